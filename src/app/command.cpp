// The whole of the lictor command: reads the arguments, does what they say, and returns the
// process's exit code (commands.md).

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "app/command_line.h"
#include "app/config.h"
#include "app/daemon.h"
#include "app/dev.h"
#include "app/executors.h"
#include "app/state_dir.h"
#include "app/try_workers.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/printable.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/process.h"
#include "cli/screen.h"
#include "client/client.h"
#include "core/overloaded.h"
#include "exec/init.h"
#include "lictor/worker.h"
#include "net/environment.h"
#include "net/token_source.h"
#include "net/transport.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

// Consul's secrets of this process's environment, once they are hidden there.
std::map<std::string, std::string, std::less<>>& hidden_secrets() {
  static std::map<std::string, std::string, std::less<>> secrets;
  return secrets;
}

// Afterwards no job, not even one of this user, can read Consul's secrets from
// /proc/<daemon>/environ or from this process's memory. The process dumps no core, and only root
// can debug it.
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

// Consul's own variables override the configuration; lictor's variables and flags override both.
auto consul_environment(const LoadRequest& request) {
  const auto given = [&](const std::optional<std::string>& flag, std::string_view variable) {
    const auto it = request.environment.find(variable);
    return flag || (it != request.environment.end() && !it->second.empty());
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

LoadRequest load_request(const Invocation& invocation, Mode mode) {
  LoadRequest request;
  request.mode = mode;
  request.flags = invocation.overrides;
  request.environment = read_environment(environ);
  return request;
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

struct Target {
  std::string queue;
  wire::Layout layout;
};

std::string names_of(const Config& config) {
  std::vector<std::string_view> names;
  for (const QueueConfig& queue : config.queues) names.push_back(queue.options.queue);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The queue that was named, else the only one, else "default".
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

// Where this host's daemon serves its admin API.
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

Mode daemon_mode(const Registry& registry) {
  return registry.empty() ? Mode::kDaemon : Mode::kEmbedded;
}

Result<int> run(const Invocation& invocation, const RunCommand& command, const Registry& registry,
                cli::Console& console) {
  const auto load_all = [&]() -> Result<Config> {
    LICTOR_TRY(auto loaded, load(load_request(invocation, daemon_mode(registry))));
    return with_registered(std::move(loaded), registry);
  };
  LICTOR_TRY(const auto config, load_all());
  if (!command.dry_run) {
    hide_secrets();
    exec::leave_pid_1();
    return run_daemon(config, registry, {command.once, load_all});
  }

  // Files that the daemon does not start without.
  LICTOR_TRY(const auto transport, net::Transport::open(config.consul.options));
  if (!config.admin.token_file.empty()) {
    LICTOR_TRY(const auto token, read_token_file(config.admin.token_file));
  }
  for (const std::string& warning : config.warnings) console.complain(warning);
  console.print(fmt::format("node {}, Consul at {}, state in {}\n", config.node,
                            config.consul.options.addresses.front(), config.state_dir));
  console.print(cli::connections_text(config.queues.size(), !config.admin.listen.empty()) + '\n');
  for (const QueueConfig& queue : config.queues) {
    std::vector<std::string_view> types;
    for (const auto& [type, executor] : queue.executors) types.push_back(type);
    const std::size_t schedules = queue.options.schedules.size();
    const bool divided = queue.options.partitions > 1;
    console.print(fmt::format(
        "queue {}: tasks below {}, leader key {}, {}{} at a time{}, {}executors: {}\n",
        queue.options.queue, queue.layout.tasks_prefix, queue.layout.leader_key,
        divided ? fmt::format("{}, this host's weight {}, ",
                              counted(queue.options.partitions, "partition"), queue.weight)
                : "",
        counted(queue.options.concurrency, "task"), divided ? " on each host" : "",
        schedules == 0 ? "" : counted(schedules, "schedule") + ", ",
        types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
  }
  return cli::kDone;
}

Result<int> check(const Invocation& invocation, const CheckCommand& command,
                  const Registry& registry, cli::Console& console) {
  cli::CheckOptions options;
  options.strict = command.strict;
  auto config = load(load_request(invocation, Mode::kClient));
  if (!config) {
    options.error = config.error();
    return cli::check(console, options, invocation.json);
  }
  if (auto added = with_registered(*config, registry)) {
    config = std::move(added);
  } else {
    options.daemon_error = added.error();
  }
  options.file = config->file;
  options.warnings = config->warnings;
  options.consul = config->consul.options;
  options.registers = config->consul.register_service;
  options.has_admin = !config->admin.listen.empty();
  options.asks_for_token = !config->admin.token_file.empty();
  options.own_admin = own_admin(*config);
  const std::string admin_token = admin_token_of(*config);
  const auto add = [&](const Target& target, const QueueConfig& queue) {
    options.queues.push_back({target.queue, target.layout, queue.options, queue.session_checks,
                              config->hang_timeout, admin_token, options.own_admin});
  };
  for (const QueueConfig& queue : config->queues) {
    if (!queue.executors.empty()) options.serves = true;
    ++options.served_queues;
    const std::string& name = queue.options.queue;
    if (!invocation.queue || *invocation.queue == name) add({name, queue.layout}, queue);
  }
  if (options.queues.empty()) {
    LICTOR_TRY(const auto target, target_of(*config, invocation.queue));
    add(target, config->queues.front());
  }
  if (command.role == "reader") options.serves = false;
  if (command.role == "daemon") options.serves = true;
  if (options.serves) {
    const auto for_daemon = load_config(load_request(invocation, daemon_mode(registry)));
    if (!for_daemon) options.daemon_error = for_daemon.error();
    if (for_daemon) options.workers = try_workers(*for_daemon);
    options.state_dir = config->state_dir;
    options.state_dir_exposure = state_dir_exposure(config->state_dir);
    options.state_dir_owner = state_dir_owner(config->state_dir);
    const std::string few = descriptor_shortage(*config, most_descriptors());
    if (!few.empty()) options.warnings.push_back(few);
  }
  return cli::check(console, options, invocation.json);
}

// A command that works on one queue, chosen by the type of its options.
template <class Options>
struct Call {
  Result<int> (*command)(const cli::Client&, const Options&);

  Result<int> operator()(const cli::Client& client, const Options& options) const {
    return command(client, options);
  }
};
template <class Options>
Call(Result<int> (*)(const cli::Client&, const Options&)) -> Call<Options>;

const core::Overloaded kCalls{
    Call{cli::submit},
    Call{cli::submit_many},
    Call{cli::logs},
    Call{cli::events},
    Call{cli::cancel},
    Call{cli::retry},
    Call{cli::dead_list},
    Call{cli::dead_show},
    Call{cli::dead_purge},
    Call{cli::schedule_list},
    Call{cli::schedule_show},
    Call{cli::schedule_add},
    Call{cli::schedule_remove},
    Call{cli::schedule_run},
    Call{cli::schedule_pause},
    Call{cli::schedule_resume},
    Call{cli::schedule_next},
    Call{cli::pause},
    Call{cli::resume},
    Call{cli::bench},
    Call{cli::drain},
    Call{cli::undrain},
    [](const cli::Client& c, const cli::ListOptions& o) {
      return o.watch ? cli::watch(c.console, [&] { return cli::list(c, o); }) : cli::list(c, o);
    },
    [](const cli::Client& c, const cli::LeaderOptions& o) {
      return o.watch ? cli::watch(c.console, [&] { return cli::leader(c, o); }) : cli::leader(c, o);
    },
    [](const cli::Client& c, const ShowCommand& o) { return cli::show(c, o.id); },
    [](const cli::Client& c, const WhyCommand& o) { return cli::why(c, o.id); },
    [](const cli::Client& c, const StatsCommand&) { return cli::stats(c); },
    [](const cli::Client& c, const TopCommand&) { return cli::top(c); },
    [](const cli::Client& c, const MembersCommand&) { return cli::members(c); }};

cli::LocalSchedule local_schedule(const Config& config, const std::string& queue,
                                  const std::string& name) {
  const QueueConfig* known = config.find(queue);
  if (known == nullptr) return {};
  const auto found = known->options.schedules.find(name);
  if (found == known->options.schedules.end()) return {};
  const core::ConfiguredSchedule& schedule = found->second;
  if (!schedule.sets_paused) return {config.file, std::nullopt};
  return {config.file, schedule.definition->paused};
}

// What a command takes from the configuration beside the queue.
template <class Options>
Options completed(Options options, const Config& config, const std::string& queue) {
  if constexpr (requires { options.local; }) {
    options.local = local_schedule(config, queue, options.name);
  }
  if constexpr (requires { options.own_node; }) {
    options.own_node = config.node;
    options.state_dir = config.state_dir;
  }
  if constexpr (requires { options.consul; }) options.consul = config.consul.options;
  return options;
}

// Why there is no such queue, by what is in Consul: without a configuration any name would do, also
// a misspelt one. Empty: there is, though it may have no task, or the token may not list the queues.
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

// Producers may come before the first daemon.
template <class Options>
constexpr bool kMakesQueue = std::is_same_v<Options, cli::SubmitOptions> ||
                             std::is_same_v<Options, cli::SubmitManyOptions> ||
                             std::is_same_v<Options, cli::ScheduleAddOptions>;

// A command that works on one queue.
template <class Options>
Result<int> call(const Invocation& invocation, const Options& options, cli::Console& console) {
  if constexpr (std::is_same_v<Options, TopCommand>) cli::Screen::block_signals();
  LICTOR_TRY(const auto config, load(load_request(invocation, Mode::kClient)));
  for (const std::string& warning : config.warnings) console.complain(warning);
  LICTOR_TRY(const auto target, target_of(config, invocation.queue));
  if (config.queues.size() > 1 || target.queue != config.queues.front().options.queue) {
    console.name_queue(target.queue);
  }
  LICTOR_TRY(auto opened, net::Transport::open(config.consul.options));
  const auto transport = cli::patient(std::move(opened), config.consul.options.addresses, console);
  lictor::Client api{
      std::make_unique<lictor::Client::Impl>(*transport, target.queue, target.layout)};
  client::Store store{*transport};
  if (invocation.queue && config.file.empty() && !std::is_same_v<Options, cli::BenchOptions>) {
    const std::string unknown = unknown_queue(store, config.root, target.queue);
    if (!unknown.empty() && !kMakesQueue<Options>) return fail(ErrorCode::kNotFound, unknown);
    if (!unknown.empty()) console.complain(unknown + "; what is written waits for a daemon");
  }
  return kCalls(cli::Client{console, api, store, target.queue, target.layout, invocation.json,
                            admin_token_of(config), own_admin(config)},
                completed(options, config, target.queue));
}

Result<int> try_task(const Invocation& invocation, const TryCommand& command,
                     const Registry& registry, cli::Console& console) {
  LoadRequest request = load_request(invocation, daemon_mode(registry));
  request.refuse_untrusted = false;  // for trying out, with files of one's own
  LICTOR_TRY(auto config, load_config(request));
  LICTOR_TRY(config, with_registered(std::move(config), registry));
  for (const std::string& warning : config.warnings) console.complain(warning);
  LICTOR_TRY(const auto target, target_of(config, invocation.queue));
  exec::leave_pid_1();
  return run_try(command, std::move(config), target.queue, registry, console, invocation.json);
}

Result<int> dispatch(const Invocation& invocation, const Registry& registry,
                     cli::Console& console) {
  const core::Overloaded dispatched{
      [&](const RunCommand& command) { return run(invocation, command, registry, console); },
      [&](const CheckCommand& command) { return check(invocation, command, registry, console); },
      [&](const VersionCommand&) { return cli::version(console, invocation.json); },
      [&](const DevCommand& command) {
        exec::leave_pid_1();
        LoadRequest request = load_request(invocation, Mode::kEmbedded);
        request.refuse_untrusted = false;  // for trying out, with files of one's own
        return run_dev(
            command, request, registry, [&] { return load_config(request); }, console);
      },
      [&](const TryCommand& command) { return try_task(invocation, command, registry, console); },
      [&](const auto& command) { return call(invocation, command, console); }};
  return std::visit(dispatched, invocation.command);
}

int run_arguments(const std::vector<std::string>& arguments, const Registry& registry) {
  // In "lictor list | head" the write then fails, which Console handles, instead of killing us.
  signal(SIGPIPE, SIG_IGN);
  cli::Console console = cli::Console::standard();
  const auto parsed = parse_command_line(arguments);
  int code = cli::kDone;
  if (const auto* answer = std::get_if<Answer>(&parsed)) {
    code = answer->exit_code;
    if (code == cli::kDone) {
      console.print(answer->text);
    } else {
      console.note_lines(answer->text);
    }
  } else {
    const auto result = dispatch(std::get<Invocation>(parsed), registry, console);
    console.end_progress();
    if (result) {
      code = *result;
    } else {
      if (runtime::stderr_is_journal()) std::fputs("<3>", stderr);
      console.complain(result.error().message);
      code = cli::exit_code(result.error().code);
    }
  }
  if (auto flushed = console.flush(); !flushed) {
    console.complain(flushed.error().message);
    if (code == cli::kDone) code = cli::kFailed;
  }
  if (code != cli::kDone) cli::end_if_interrupted();
  return code;
}

}  // namespace

}  // namespace lictor::app

namespace lictor {

void Worker::add(std::string name, std::shared_ptr<Executor> executor) {
  LICTOR_ASSERT(executor != nullptr);
  executors_.insert_or_assign(std::move(name), std::move(executor));
}

int Worker::main(int argc, char** argv) {
  open_standard_descriptors();
  if (argc > 0 && argv[0] != nullptr) {
    cli::program_name() = std::filesystem::path{argv[0]}.filename().string();
  }
  try {
    return app::run_arguments({argv + (argc > 0 ? 1 : 0), argv + argc}, executors_);
  } catch (const std::system_error& error) {
    // std::thread throws EAGAIN; the messages of others, such as std::filesystem's, are complete.
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "%s: %s%s%s\n", cli::program_name().c_str(),
                 thread ? "cannot start a thread: " : "", error.what(),
                 thread ? "; raise the limit of processes" : "");
    return cli::kFailed;
  } catch (const std::exception& error) {  // out of memory, most likely
    std::fprintf(stderr, "%s: %s\n", cli::program_name().c_str(), error.what());
    return cli::kFailed;
  }
}

}  // namespace lictor
