#include "app/config_override.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "net/endpoint.h"

namespace lictor::app {
namespace {

tl::unexpected<Error> expected(const std::string& source, const std::string& what,
                               const std::string& got) {
  return fail(ErrorCode::kInvalid, source + ": expected " + what + ", got \"" + excerpt(got) + '"');
}

using Apply = Result<void> (*)(const std::string& source, const std::string& value, Config& config);

Result<void> apply_node(const std::string& source, const std::string& value, Config& config) {
  if (!is_name(value)) return expected(source, std::string{kNameForm}, value);
  config.node = value;
  return {};
}

Result<void> apply_root(const std::string& source, const std::string& value, Config& config) {
  if (const std::string fault = kv_key_fault(value); !fault.empty()) {
    return fail(ErrorCode::kInvalid, source + ": \"" + excerpt(value) + "\": " + fault);
  }
  if (!value.ends_with('/')) return expected(source, "a KV prefix that ends in \"/\"", value);
  config.root = value;
  return {};
}

// What is typed at a prompt is relative to where it is typed; the daemon is somewhere else.
Result<void> take_path(const std::string& source, const std::string& value, std::string& target) {
  std::error_code error;
  const auto path = std::filesystem::absolute(value, error);
  if (error) return fail(ErrorCode::kInvalid, source + ": " + error.message());
  target = path.string();
  return {};
}

Result<void> apply_state_dir(const std::string& source, const std::string& value, Config& config) {
  return take_path(source, value, config.state_dir);
}

Result<void> apply_token_file(const std::string& source, const std::string& value, Config& config) {
  config.consul.options.token.clear();  // the file's token, over which this lies
  return take_path(source, value, config.consul.options.token_file);
}

Result<void> apply_log_level(const std::string& source, const std::string& value, Config& config) {
  const auto level = choose(value, log_levels());
  if (!level) return expected(source, one_of(log_levels()), value);
  config.log.level = *level;
  return {};
}

Result<void> apply_log_format(const std::string& source, const std::string& value, Config& config) {
  const auto format = choose(value, log_formats());
  if (!format) return expected(source, one_of(log_formats()), value);
  config.log.format = *format;
  return {};
}

Result<void> apply_addresses(const std::string& source, const std::string& value, Config& config) {
  std::vector<std::string> addresses;
  for (std::size_t start = 0; start <= value.size();) {
    const std::size_t comma = std::min(value.find(',', start), value.size());
    std::string address = value.substr(start, comma - start);
    address.erase(0, std::min(address.find_first_not_of(' '), address.size()));
    address.erase(address.find_last_not_of(' ') + 1);
    if (auto endpoint = net::parse_endpoint(address, {}); !endpoint) {
      return fail(endpoint.error().code, source + ": " + endpoint.error().message);
    }
    addresses.push_back(std::move(address));
    start = comma + 1;
  }
  config.consul.options.addresses = std::move(addresses);
  return {};
}

struct Override {
  std::optional<std::string> Overrides::*flag_value;
  std::string_view variable;
  std::string_view flag;
  Apply apply;  // nullptr: not to the Config
};
constexpr std::array kOverrides{
    Override{&Overrides::config, "LICTOR_CONFIG", "--config", nullptr},
    Override{&Overrides::node, "LICTOR_NODE", "--node", apply_node},
    Override{&Overrides::root, "LICTOR_ROOT", "--root", apply_root},
    Override{&Overrides::state_dir, "LICTOR_STATE_DIR", "--state-dir", apply_state_dir},
    Override{&Overrides::log_level, "LICTOR_LOG_LEVEL", "--log-level", apply_log_level},
    Override{&Overrides::log_format, "LICTOR_LOG_FORMAT", "--log-format", apply_log_format},
    Override{&Overrides::consul_addresses, "LICTOR_CONSUL_ADDRESSES", "--consul", apply_addresses},
    Override{&Overrides::token_file, "LICTOR_TOKEN_FILE", "--token-file", apply_token_file},
};

// What a job gets (DESIGN.md, executors): a command run by a job has them in its environment.
// LICTOR_SEED and LICTOR_SEEDS are for tests.
constexpr std::array<std::string_view, 11> kOtherVariables{
    "LICTOR_TASK_ID", "LICTOR_TASK_KEY",      "LICTOR_TASK_TYPE", "LICTOR_QUEUE",
    "LICTOR_ATTEMPT", "LICTOR_FENCING_TOKEN", "LICTOR_DEADLINE",  "LICTOR_COMMIT",
    "LICTOR_RESULT",  "LICTOR_SEED",          "LICTOR_SEEDS"};

}  // namespace

const Choices<LogLevel>& log_levels() {
  static const Choices<LogLevel> kLevels{{"trace", LogLevel::kTrace},
                                         {"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warn", LogLevel::kWarn},
                                         {"error", LogLevel::kError}};
  return kLevels;
}

const Choices<LogFormat>& log_formats() {
  static const Choices<LogFormat> kFormats{
      {"text", LogFormat::kText}, {"json", LogFormat::kJson}, {"journal", LogFormat::kJournal}};
  return kFormats;
}

Result<void> apply_overrides(const LoadRequest& request, Config& config) {
  for (const Override& over : kOverrides) {
    if (over.apply == nullptr) continue;
    if (const auto& value = request.flags.*over.flag_value) {
      if (auto applied = over.apply(std::string{over.flag}, *value, config); !applied) {
        return applied;
      }
      continue;
    }
    // An empty variable counts as not set, as Consul's own do.
    const auto variable = request.environment.find(over.variable);
    if (variable == request.environment.end() || variable->second.empty()) continue;
    if (auto applied = over.apply(variable->first, variable->second, config); !applied) {
      return applied;
    }
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
