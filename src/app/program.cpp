#include "app/program.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/process.h"
#include "client/client.h"
#include "client/store.h"
#include "net/environment.h"
#include "net/token_source.h"
#include "net/transport.h"

namespace lictor::app {
namespace {

// Consul's secrets of this process's environment, once they are hidden there.
std::map<std::string, std::string, std::less<>>& hidden_secrets() {
  static std::map<std::string, std::string, std::less<>> secrets;
  return secrets;
}

// Consul's own variables override the configuration; lictor's variables and flags override both.
auto consul_environment(const LoadRequest& request) {
  const auto given = [&](const std::optional<std::string>& flag, std::string_view variable) {
    return flag || request.environment.contains(variable);
  };
  return [own_addresses = given(request.flags.consul_addresses, "LICTOR_CONSUL_ADDRESSES"),
          own_token = given(request.flags.token_file, "LICTOR_TOKEN_FILE")](
             const char* name) -> const char* {
    const std::string_view variable{name};
    if (own_addresses && variable == "CONSUL_HTTP_ADDR") return nullptr;
    if (own_token && variable.starts_with("CONSUL_HTTP_TOKEN")) return nullptr;
    const auto hidden = hidden_secrets().find(variable);
    return hidden != hidden_secrets().end() ? hidden->second.c_str() : std::getenv(name);
  };
}

std::string names_of(const Config& config) {
  std::vector<std::string_view> names;
  for (const QueueConfig& queue : config.queues) names.push_back(queue.options.queue);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::map<std::string, cli::LocalSchedule> local_schedules(const Config& config,
                                                          const std::string& queue) {
  std::map<std::string, cli::LocalSchedule> schedules;
  const QueueConfig* known = config.find(queue);
  if (known == nullptr) return schedules;
  for (const auto& [name, schedule] : known->options.schedules) {
    schedules[name].file = config.file;
    if (schedule.sets_paused) schedules[name].paused = schedule.definition->paused;
  }
  return schedules;
}

// Says so if Consul has no such queue: without a configuration any name would do, also a misspelt
// one. Empty: the queue is there, though it may have no task, or the token may not list the queues.
std::string unknown_queue(client::Store& store, const std::string& root, const std::string& queue) {
  constexpr std::size_t kNamed = 10;
  auto known = store.folders(root);
  if (!known || std::find(known->begin(), known->end(), queue) != known->end()) return {};
  std::string text = fmt::format("no queue \"{}\" in Consul below {}", printable(queue), root);
  const std::vector<std::string_view> names{known->begin(), known->end()};
  if (const std::string near = nearest(queue, names); !near.empty()) {
    text += fmt::format("; did you mean \"{}\"?", printable(near));
  }
  if (names.empty()) return text + "; no daemon has served one there yet";
  const bool all = known->size() <= kNamed;
  if (!all) known->resize(kNamed);
  return text + fmt::format("; it has {}{}", printable(fmt::format("{}", fmt::join(*known, ", "))),
                            all ? "" : ", ...");
}

}  // namespace

LoadRequest Program::load_request(Mode mode) const {
  LoadRequest request;
  request.mode = mode;
  request.flags = overrides;
  request.environment = read_environment(environ);
  return request;
}

// The variable's bytes are overwritten, not only unset: /proc/<pid>/environ shows the memory that
// the process was started with.
void hide_secrets() {
  prctl(PR_SET_DUMPABLE, 0);
  for (const char* name : {"CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"}) {
    char* value = std::getenv(name);
    if (value == nullptr) continue;
    hidden_secrets()[name] = value;  // for a reload
    explicit_bzero(value, std::strlen(value));
    unsetenv(name);
  }
}

Result<Config> load(const LoadRequest& request) {
  LICTOR_TRY(auto config, load_config(request));
  const auto environment = consul_environment(request);
  LICTOR_TRY(auto consul, net::options_from_environment(config.consul.options, environment));
  // The file may name one cluster and its token, and the shell another cluster.
  const auto& named = config.consul.options.addresses;
  const auto without = net::options_from_environment(config.consul.options, [&](const char* name) {
    return std::string_view{name} == "CONSUL_HTTP_ADDR" ? nullptr : environment(name);
  });
  const bool differs = without && without->addresses != consul.addresses;
  if (differs && named != net::Options{}.addresses) {
    config.warnings.push_back("consul.addresses: CONSUL_HTTP_ADDR (" +
                              printable(consul.addresses.front()) + ") overrides " +
                              printable(named.front()) + " of " + config.file);
  }
  config.consul.options = std::move(consul);
  return config;
}

// Without a file any name will do, since no list of queues is there. With a file, a name that the
// file does not have is most likely a misspelt one, so it is an error.
Result<Target> target_of(const Config& config, const std::optional<std::string>& queue) {
  if (config.file.empty() && queue) {  // no file lists the queues
    if (queue->empty() || !client::key_fault(*queue).empty() ||
        queue->find('/') != std::string::npos) {
      return fail(ErrorCode::kInvalid,
                  "--queue: expected a name, got \"" + printable(*queue) + '"');
    }
    return Target{*queue, wire::Layout::under(config.root, *queue)};
  }
  if (!queue && config.queues.size() == 1) {
    return Target{config.queues.front().options.queue, config.queues.front().layout};
  }
  const std::string name = queue.value_or("default");
  if (const QueueConfig* known = config.find(name)) return Target{name, known->layout};
  if (!queue) {
    return fail(
        ErrorCode::kInvalid,
        config.file + " has several queues; choose one with --queue (" + names_of(config) + ")");
  }
  return fail(ErrorCode::kInvalid, "--queue: " + config.file + " has no queue \"" +
                                       printable(name) + "\"; it has " + names_of(config));
}

std::vector<std::string> own_admin(const Config& config) {
  std::vector<std::string> own;
  for (const std::string& address : config.admin.listen) {
    own.push_back(address.starts_with("unix:") ? address : "http://" + address);
  }
  return own;
}

// A user who may not read the file gets an error from the admin API: it needs a token.
std::string admin_token_of(const Config& config) {
  net::TokenSource token;
  static_cast<void>(token.open({}, config.admin.token_file, std::chrono::hours{1}));
  return token.current();
}

Result<int> run_on_queue(const Program& program, const cli::Command& command) {
  using Queue = cli::Command::Queue;
  if (command.before_threads) command.before_threads();
  cli::Console& console = program.console;
  LICTOR_TRY(const auto config, load(program.load_request(Mode::kClient)));
  for (const std::string& warning : config.warnings) console.report_error(warning);
  LICTOR_TRY(const auto target, target_of(config, program.queue));
  if (config.queues.size() > 1 || target.queue != config.queues.front().options.queue) {
    console.name_queue(target.queue);
  }
  LICTOR_TRY(const auto transport, net::Transport::open(config.consul.options));
  cli::report_slow_replies(*transport, config.consul.options.addresses, console);
  lictor::Client api{
      std::make_unique<lictor::Client::Impl>(*transport, target.queue, target.layout)};
  client::Store store{*transport};
  if (program.queue && config.file.empty() && command.queue != Queue::kIsOwn) {
    const std::string unknown = unknown_queue(store, config.root, target.queue);
    const bool may_be_new = command.queue == Queue::kMayBeNew;
    if (!unknown.empty() && !may_be_new) return fail(ErrorCode::kNotFound, unknown);
    if (!unknown.empty()) console.report_error(unknown + "; what is written waits for a daemon");
  }
  auto done =
      command.on_queue({console, api, store, target.queue, target.layout, program.json,
                        admin_token_of(config), own_admin(config), config.node, config.state_dir,
                        config.consul.options, local_schedules(config, target.queue)});
  // Perhaps "default" was not meant. Asked only now, since Consul walks all keys for the answer.
  const bool none = done ? *done == cli::kNotFound : done.error().code == ErrorCode::kNotFound;
  if (none && !program.queue && config.file.empty()) {
    const std::string unknown = unknown_queue(store, config.root, target.queue);
    if (!unknown.empty()) console.report_error(unknown + "; --queue names another one");
  }
  return done;
}

}  // namespace lictor::app
