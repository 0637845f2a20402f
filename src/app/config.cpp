#include "app/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config_internal.h"
#include "app/config_reader.h"
#include "base/errno_text.h"
#include "base/host_name.h"
#include "base/kv_name.h"
#include "base/read_file.h"
#include "base/siphash.h"
#include "base/text.h"
#include "base/traced_file.h"
#include "base/try.h"
#include "httpd/listener.h"
#include "net/endpoint.h"

namespace lictor::app {
namespace {

// Enough for thousands of executors; a larger file is not a configuration.
constexpr std::size_t kMaxFileBytes = 4U << 20U;
constexpr std::size_t kMaxAddresses = 32;
constexpr Duration kMinLogAge = std::chrono::minutes{1};
constexpr Duration kMaxLogAge = std::chrono::hours{24 * 3650};
constexpr std::uint64_t kMaxLogBytes = 1ULL << 50U;

std::string mode_text(mode_t mode) { return fmt::format("(mode {:04o})", mode & 07777U); }

// The host's own name, as a segment of a key.
std::string node_name() {
  std::string name = host_name().substr(0, 128);
  for (char& c : name) {
    if (!is_word({&c, 1}, "_-.")) c = '-';
  }
  return is_name(name) ? name : "localhost";
}

// Reads texts that `parse` understands. An error stands at the line of the text that is wrong.
template <class Parse>
Result<std::vector<std::string>> take_addresses(const ConfigNode& place, Parse parse) {
  std::vector<std::string> all;
  if (auto read = texts(all, kMaxAddresses)(place); !read) return tl::unexpected(read.error());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (const auto parsed = parse(all[i]); !parsed) {
      return place.item(i).refuse(parsed.error().message);
    }
  }
  return all;
}

Reader addresses(std::vector<std::string>& target) {
  using Addresses = std::vector<std::string>;
  return into(target, "an array of addresses", [](const ConfigNode& place) -> Result<Addresses> {
    LICTOR_TRY(auto all, take_addresses(place, [](const std::string& address) {
                 return net::parse_endpoint(address, {});
               }));
    if (all.empty()) return place.expected("at least one address such as \"127.0.0.1:8500\"");
    return all;
  });
}

Reader listen_addresses(std::vector<std::string>& target) {
  return into(target, "an array of addresses", [](const ConfigNode& place) {
    return take_addresses(place, httpd::parse_listen_address);
  });
}

// Reads host names without scheme and port.
Reader host_names(std::vector<std::string>& target) {
  return into(target, "an array of host names", [](const ConfigNode& place) {
    return take_addresses(place, [](const std::string& name) -> Result<void> {
      if (httpd::host_part(name) == name && is_word(name, ".-_")) return {};
      return fail(ErrorCode::kInvalid,
                  '"' + excerpt(name) + "\": expected a host name such as \"lictor.example.com\"");
    });
  });
}

Settings consul_settings(ConsulConfig& consul) {
  net::Options& options = consul.options;
  return {{"addresses", addresses(options.addresses)},
          {"token", text(options.token)},
          {"token_file", absolute_path(options.token_file)},
          {"basic_auth", text(options.basic_auth)},
          {"ca_file", absolute_path(options.ca_file)},
          {"ca_path", absolute_path(options.ca_path)},
          {"client_cert", absolute_path(options.client_cert)},
          {"client_key", absolute_path(options.client_key)},
          {"tls_server_name", text(options.tls_server_name)},
          {"tls_verify", boolean(options.tls_verify)},
          {"namespace", text(options.consul_namespace)},
          {"partition", text(options.consul_partition)},
          {"register", boolean(consul.register_service)}};
}

Result<void> check_consul(const ConfigNode& place, const net::Options& options) {
  if (!options.token.empty() && !options.token_file.empty()) {
    return place.refuse_at({"token", "token_file"},
                           "has token and token_file; remove one, best the token");
  }
  if (options.client_cert.empty() != options.client_key.empty()) {
    const bool key_missing = options.client_key.empty();
    return place.refuse_at({"client_cert", "client_key"},
                           key_missing ? "has client_cert without client_key; add client_key"
                                       : "has client_key without client_cert; add client_cert");
  }
  if (!options.basic_auth.empty() && options.basic_auth.find(':') == std::string::npos) {
    // Not quoted: it may be a password.
    return place.member("basic_auth").refuse("expected \"user:password\", got no \":\"");
  }
  return {};
}

// An admin API that other hosts reach shows tasks and output to anybody who finds it.
Result<void> check_admin(const ConfigNode& place, const AdminConfig& admin) {
  if (admin.open || !admin.token_file.empty()) return {};
  for (std::size_t i = 0; i < admin.listen.size(); ++i) {
    const auto address = httpd::parse_listen_address(admin.listen[i]);
    if (!address || !address->is_network()) continue;
    return place.member("listen").item(i).refuse(
        '"' + excerpt(admin.listen[i]) +
        "\": the network would read tasks and output there without a token; set "
        "admin.token_file, or \"open\": true if everybody may");
  }
  return {};
}

}  // namespace

Settings top_settings(Config& config, std::optional<ConfigNode>& queues) {
  Reader consul = object(
      consul_settings(config.consul), "an object",
      [&config](const ConfigNode& place) { return check_consul(place, config.consul.options); });
  Settings log{{"level", choice(config.log.level, kLogLevels)},
               {"format", choice(config.log.format, kLogFormats), false}};
  Settings admin{{"listen", listen_addresses(config.admin.listen)},
                 {"token_file", absolute_path(config.admin.token_file)},
                 {"names", host_names(config.admin.names)},
                 {"open", boolean(config.admin.open)}};
  Settings logs{{"max_age", duration(config.logs.max_age, kMinLogAge, kMaxLogAge)},
                {"max_size", size(config.logs.max_bytes, kMaxLogBytes)}};
  return {{"node", name(config.node), false},
          {"root", kv_prefix(config.root), false},
          {"state_dir", absolute_path(config.state_dir), false},
          {"hang_timeout",
           derived(duration(config.hang_timeout, Duration::zero(), std::chrono::hours{1})), false},
          {"log", object(std::move(log))},
          {"consul", std::move(consul), false},
          {"admin",
           object(std::move(admin), "an object",
                  [&config](const ConfigNode& place) { return check_admin(place, config.admin); }),
           false},
          {"logs", object(std::move(logs)), false},
          // Read last: their paths depend on "root".
          {"queues", kept(queues, "an array of objects")}};
}

std::vector<ObjectForm> configuration_forms() {
  Config config;
  QueueConfig queue;
  core::TypePolicy policy;
  ExecutorParts parts;
  std::optional<ConfigNode> place;
  QueueMembers members;
  std::vector<KeyForm> executor = forms_of(executor_settings(parts, policy, Mode::kClient));
  const std::vector<KeyForm> inherited = forms_of(policy_settings(policy));
  for (std::size_t i = 0; i < inherited.size(); ++i) executor[i].default_text = "the queue's";
  return {{"Top level", forms_of(top_settings(config, place))},
          {"Queues", forms_of(queue_settings(queue, policy, members))},
          {"Executors", std::move(executor)}};
}

namespace {

void warn_of_open_token(const std::string& setting, const std::string& path, Config& config) {
  if (path.empty()) return;
  const auto file = open_traced(path, O_PATH);
  if (!file) return;
  const std::string named = setting + " " + excerpt(path, 200) + ": ";
  if ((file->status.st_mode & S_IROTH) != 0) {
    config.warnings.push_back(fmt::format("{}readable by every user {}; chmod o-r it", named,
                                          mode_text(file->status.st_mode)));
  }
  if (const std::string fault = distrust(*file, "choose the token"); !fault.empty()) {
    config.warnings.push_back(named + fault);
  }
}

void warn_of_refused_names(Config& config) {
  for (const QueueConfig& queue : config.queues) {
    for (const QueuePath& known : kQueuePaths) {
      const std::string& path = queue.layout.*known.path;
      if (fits_path(path)) continue;
      config.warnings.push_back(fmt::format(
          R"(queue "{}": {} "{}": Consul 1.21.5 and newer refuse such names; use letters, digits )"
          R"(and ",_./-?&=" only)",
          queue.options.queue, known.setting, excerpt(path, 200)));
      break;  // the others of a queue begin alike
    }
  }
}

void warn_of_useless_processes(Config& config) {
  for (const auto& [queue, type, worker] : executors_of<WorkerConfig>(config.queues)) {
    const std::uint32_t own = queue.options.policy_of(type)->concurrency;
    const std::uint32_t most =
        own != 0 ? std::min(own, queue.options.concurrency) : queue.options.concurrency;
    if (worker.processes <= most) continue;
    config.warnings.push_back(fmt::format(
        R"(queue "{}": executor "{}": processes is {}, but concurrency {} lets no more than {} )"
        "work; raise concurrency",
        queue.options.queue, excerpt(type), worker.processes, most, most));
  }
}

void warn_of_exposed_token(const LoadRequest& request, Config& config) {
  const net::Options& consul = config.consul.options;
  const bool has_variable = request.environment.contains("CONSUL_HTTP_TOKEN");
  if (has_variable && !consul.token_file.empty() && request.mode != Mode::kClient) {
    config.warnings.emplace_back(
        "CONSUL_HTTP_TOKEN is used in place of consul.token_file; unset it");
  }
  if (!consul.tls_verify) {
    config.warnings.emplace_back(
        "consul.tls_verify is false: whoever is between this host and Consul can read the token "
        "and "
        "write tasks; name the CA in consul.ca_file");
  }
  if (!has_variable && consul.token.empty() && consul.token_file.empty()) return;
  for (const std::string& address : consul.addresses) {
    const auto endpoint = net::parse_endpoint(address, {});
    if (!endpoint || !address.starts_with("http://")) continue;
    const std::string_view host = httpd::host_part(std::string_view{endpoint->origin}.substr(7));
    if (host == "localhost" || httpd::is_loopback(host)) continue;
    config.warnings.push_back("consul.addresses: \"" + excerpt(endpoint->address) +
                              "\" sends the token over the network without TLS; use https");
  }
}

// Only root may choose what root's daemon runs as root; only root and user X may choose what it
// runs as user X. The program is started by its path later: if this finds no fault, the path still
// leads to the same file. A script's interpreter and a program's libraries are not checked.
Result<void> check_programs(const Config& config) {
  if (::geteuid() != 0) return {};
  for (const QueueConfig& queue : config.queues) {
    for (const auto& [type, executor] : queue.executors) {
      const exec::ProcessOptions* exec = program_of(executor);
      if (exec == nullptr) continue;
      const std::string& path = exec->argv.front();
      const std::string named =
          fmt::format(R"({}: queue "{}": executor "{}": program "{}": )", config.file,
                      queue.options.queue, excerpt(type), excerpt(path, 200));
      const auto file =
          open_traced(path, O_PATH, exec->user ? exec->user->credentials.uid : uid_t{0});
      if (!file) return fail(ErrorCode::kFailed, named + errno_text() + "; correct the path");
      const std::string fault = distrust(
          *file, "choose what runs as " + (exec->user ? excerpt(exec->user->name) : "root"));
      if (!fault.empty()) return fail(ErrorCode::kInvalid, named + fault);
    }
  }
  return {};
}

// Reads everything into `config`, each step on the result of the last one: the file's settings,
// variables and flags over them, then the queues, whose paths begin with "root" and whose keys
// contain the node; last the settings that are derived from the queues, and the warnings.
// `top`: the file's value; nullptr: there is no file.
Result<void> build(const ConfigNode* top, const LoadRequest& request, Config& config) {
  std::optional<ConfigNode> queues;
  if (top != nullptr) {
    if (auto read = read_settings(*top, top_settings(config, queues)); !read) return read;
  }
  if (auto applied = apply_overrides(request, config); !applied) return applied;
  if (config.node.empty()) {
    config.node = node_name();
    if (const auto instance = instance_of(config.file); !instance.empty()) {
      config.node += fmt::format("-{}", instance);
    }
  }
  config.admin.listen_is_default =
      top == nullptr || !top->has("admin") || !top->member("admin").has("listen");

  if (queues) {
    if (auto read = read_queues(*queues, request, config); !read) return read;
  } else if (request.mode == Mode::kDaemon && top != nullptr) {
    return top->refuse(R"(says nothing to run; add for instance )"
                       R"("queues": [{"executors": {"*": {"exec": ["/opt/jobs/any"]}}}])");
  } else {
    config.queues.push_back(default_queue("default", config.root, config.node));
  }

  if (top == nullptr || !top->has("hang_timeout")) {
    config.hang_timeout = default_hang_timeout(config.queues);
  } else if (auto checked = check_hang_timeout(*top, config.hang_timeout, config.queues);
             !checked) {
    return checked;
  }

  config.warnings = unknown_variables(request.environment);
  warn_of_exposed_token(request, config);
  warn_of_refused_names(config);
  const bool serves = request.mode != Mode::kClient && !request.only_type;
  if (serves) warn_of_useless_processes(config);
  warn_of_open_token("consul.token_file", config.consul.options.token_file, config);
  warn_of_open_token("consul.client_key", config.consul.options.client_key, config);
  warn_of_open_token("admin.token_file", config.admin.token_file, config);
  std::set<std::string> tokens;
  for (const auto& http : executors_of<HttpConfig>(config.queues)) {
    tokens.insert(http.settings.token_file);
  }
  for (const std::string& token : tokens) warn_of_open_token("http token_file", token, config);
  return {};
}

// The error for a file that cannot be read, from errno. `named`: the path, and the flag or variable
// that named it.
tl::unexpected<Error> unreadable(const std::string& named, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return fail(denied ? ErrorCode::kPermissionDenied : ErrorCode::kInvalid,
              named + ": " + errno_text(error) +
                  (denied ? "; ask for the right to read it, or name another file with --config"
                          : "; correct the path, or name another file with --config"));
}

void warn_of_open_file(const std::string& path, const struct stat& status, Config& config) {
  if (!S_ISREG(status.st_mode)) return;  // other users cannot read a pipe
  const net::Options& consul = config.consul.options;
  if ((status.st_mode & S_IROTH) != 0 && !(consul.token.empty() && consul.basic_auth.empty())) {
    config.warnings.push_back(fmt::format(
        "{}: holds a secret and is readable by every user {}; move the token to consul.token_file, "
        "or chmod o-r it",
        path, mode_text(status.st_mode)));
  }
}

}  // namespace

Result<Config> load_config(const LoadRequest& request) {
  std::string path = request.default_path;
  std::string named = path;
  bool is_default = true;
  const auto variable = request.environment.find("LICTOR_CONFIG");
  if (request.flags.config) {
    path = *request.flags.config;
    named = "--config " + path;
    is_default = false;
  } else if (variable != request.environment.end()) {
    path = variable->second;
    named = "LICTOR_CONFIG " + path;
    is_default = false;
  }

  const auto file = open_traced(path, O_RDONLY);
  if (!file && is_default && (errno == ENOENT || errno == ENOTDIR)) {
    if (request.mode == Mode::kDaemon) {
      return fail(ErrorCode::kInvalid,
                  path + R"(: no such file, and "lictor run" needs one; write for instance )"
                         R"({"queues": [{"executors": {"*": {"exec": ["/opt/jobs/any"]}}}]} )"
                         "there, or name another file with --config");
    }
    Config config;
    if (auto built = build(nullptr, request, config); !built) return tl::unexpected{built.error()};
    return config;
  }
  if (!file) return unreadable(named, errno);
  const bool trusts_all = request.mode == Mode::kClient || !request.refuse_untrusted;
  const std::string fault = distrust(*file, "make root start programs");
  if (!fault.empty() && !trusts_all) return fail(ErrorCode::kInvalid, named + ": " + fault);
  const auto text = read_up_to(file->fd.get(), kMaxFileBytes);
  if (!text) return unreadable(named, errno);
  if (text->size() > kMaxFileBytes) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: expected a configuration of at most {} bytes, got more; is it "
                            "another file?",
                            named, kMaxFileBytes));
  }
  LICTOR_TRY(auto config, parse_config(*text, path, request));
  if (!trusts_all) {
    if (auto checked = check_programs(config); !checked) return tl::unexpected{checked.error()};
  }
  if (!fault.empty()) config.warnings.push_back(named + ": " + fault);
  warn_of_open_file(path, file->status, config);
  return config;
}

namespace {

// Leaves out the settings of a single host, so that the result is the same on all hosts.
nlohmann::json shared_settings(nlohmann::json value) {
  for (const char* own : {"node", "state_dir", "hang_timeout", "log", "consul", "admin", "logs"}) {
    if (value.is_object()) value.erase(own);
  }
  const auto queues = value.is_object() ? value.find("queues") : value.end();
  if (queues == value.end() || !queues->is_array()) return value;
  for (auto& queue : *queues) {
    if (queue.is_object()) queue.erase("weight");
  }
  return value;
}

}  // namespace

// The digest is of the file's JSON, not of the structs: two versions of lictor, whose defaults may
// differ, agree on one file.
Result<Config> parse_config(std::string_view text, std::string_view file,
                            const LoadRequest& request) {
  LICTOR_TRY(const auto tree, parse_json_tree(text, file));
  const ConfigNode top{tree, file};
  Config config;
  config.file = file;
  if (const auto instance = instance_of(file); !instance.empty()) {
    config.state_dir += fmt::format("/{}", instance);
  }
  if (auto built = build(&top, request, config); !built) return tl::unexpected{built.error()};
  const nlohmann::json shared = shared_settings(tree.value);
  config.digest = client::digest_of(shared);
  config.parts = client::config_digest(shared);
  return config;
}

std::string_view instance_of(std::string_view file) {
  constexpr std::string_view kFolder = "/etc/lictor/";
  constexpr std::string_view kEnding = ".json";
  if (file == kDefaultConfigPath || !file.starts_with(kFolder) || !file.ends_with(kEnding)) {
    return {};
  }
  const auto name = file.substr(kFolder.size(), file.size() - kFolder.size() - kEnding.size());
  return name.find('/') == std::string_view::npos && is_name(name) ? name : std::string_view{};
}

const QueueConfig* Config::find(std::string_view queue) const {
  const auto found = std::find_if(queues.begin(), queues.end(),
                                  [&](const auto& each) { return each.options.queue == queue; });
  return found == queues.end() ? nullptr : &*found;
}

Environment read_environment(const char* const* environment) {
  Environment variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry{*environment};
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == entry.size()) continue;
    variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

}  // namespace lictor::app
