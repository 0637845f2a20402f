// Variables and flags over the file. Each is read by a Reader, as a setting of the file is, from a
// text without file and line, so that an error names the variable or the flag instead. A flag wins
// over its variable.

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "app/config_internal.h"
#include "base/text.h"
#include "net/endpoint.h"

namespace lictor::app {
namespace {

// A path on the command line is relative to the shell's working directory, not to the daemon's.
Reader path_from_here(std::string& target) {
  return into(target, "a path", [](const ConfigNode& place) -> Result<std::string> {
    std::error_code error;
    const auto path = std::filesystem::absolute(place.value().get<std::string>(), error);
    if (error) return place.refuse(error.message());
    return path.string();
  });
}

// Also overrides a token in the file.
Reader token_file(net::Options& consul) {
  return {[&consul](const ConfigNode& place) {
            consul.token.clear();
            return path_from_here(consul.token_file)(place);
          },
          "a path"};
}

Reader comma_addresses(std::vector<std::string>& target) {
  using Addresses = std::vector<std::string>;
  return into(target, "addresses", [](const ConfigNode& place) -> Result<Addresses> {
    Addresses all;
    const auto text = place.value().get<std::string>();
    std::string_view rest = text;
    while (true) {
      const std::size_t comma = rest.find(',');
      all.emplace_back(trimmed(rest.substr(0, comma)));
      if (auto endpoint = net::parse_endpoint(all.back(), {}); !endpoint) {
        return place.refuse(endpoint.error().message);
      }
      if (comma == std::string_view::npos) return all;
      rest.remove_prefix(comma + 1);
    }
  });
}

// The list of all overrides, which also finds misspelt variables.
struct Override {
  std::optional<std::string> Overrides::*flag_value;
  std::string_view variable;
  std::string_view flag;
  Reader (*reader)(Config& config);  // nullptr: load_config() reads it
};
constexpr std::array kOverrides{
    Override{&Overrides::config, "LICTOR_CONFIG", "--config", nullptr},
    Override{&Overrides::node, "LICTOR_NODE", "--node", [](Config& c) { return name(c.node); }},
    Override{&Overrides::root, "LICTOR_ROOT", "--root",
             [](Config& c) { return kv_prefix(c.root); }},
    Override{&Overrides::state_dir, "LICTOR_STATE_DIR", "--state-dir",
             [](Config& c) { return path_from_here(c.state_dir); }},
    Override{&Overrides::log_level, "LICTOR_LOG_LEVEL", "--log-level",
             [](Config& c) { return choice(c.log.level, kLogLevels); }},
    Override{&Overrides::log_format, "LICTOR_LOG_FORMAT", "--log-format",
             [](Config& c) { return choice(c.log.format, kLogFormats); }},
    Override{&Overrides::consul_addresses, "LICTOR_CONSUL_ADDRESSES", "--consul",
             [](Config& c) { return comma_addresses(c.consul.options.addresses); }},
    Override{&Overrides::token_file, "LICTOR_TOKEN_FILE", "--token-file",
             [](Config& c) { return token_file(c.consul.options); }},
};

// The variables of a job or a worker (jobs.md, workers.md), which a command run by it has in its
// environment; LICTOR_SEED and LICTOR_SEEDS of the tests.
constexpr std::array<std::string_view, 13> kOtherVariables{
    "LICTOR_TASK_ID",  "LICTOR_TASK_KEY",      "LICTOR_TASK_TYPE", "LICTOR_QUEUE",
    "LICTOR_ATTEMPT",  "LICTOR_FENCING_TOKEN", "LICTOR_DEADLINE",  "LICTOR_COMMIT",
    "LICTOR_RESULT",   "LICTOR_RUN",           "LICTOR_SEED",      "LICTOR_SEEDS",
    "LICTOR_WORKER_FD"};

}  // namespace

Result<void> apply_overrides(const LoadRequest& request, Config& config) {
  for (const Override& over : kOverrides) {
    if (over.reader == nullptr) continue;
    std::string_view source = over.flag;
    JsonTree given;
    if (const auto& flag = request.flags.*over.flag_value) {
      given.value = *flag;
    } else {
      const auto variable = request.environment.find(over.variable);
      if (variable == request.environment.end()) continue;
      source = over.variable;
      given.value = variable->second;
    }
    auto read = over.reader(config)(ConfigNode{given, "", std::string{source}});
    if (!read) return read;
  }
  return {};
}

std::vector<std::string> unknown_variables(const Environment& environment) {
  std::vector<std::string_view> ours;
  ours.reserve(kOverrides.size());
  for (const Override& over : kOverrides) ours.push_back(over.variable);

  std::vector<std::string> lines;
  for (auto it = environment.lower_bound(std::string_view{"LICTOR_"});
       it != environment.end() && it->first.starts_with("LICTOR_"); ++it) {
    const std::string& name = it->first;
    const bool known =
        name.starts_with("LICTOR_PARA_") ||
        std::find(ours.begin(), ours.end(), name) != ours.end() ||
        std::find(kOtherVariables.begin(), kOtherVariables.end(), name) != kOtherVariables.end();
    if (known) continue;
    const std::string near = nearest(name, ours);
    lines.push_back(excerpt(name) + ": no such variable, ignored" +
                    (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return lines;
}

}  // namespace lictor::app
