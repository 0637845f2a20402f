// lictor check: loads the configuration as a command and as a daemon do, and hands it to cli. A
// worker that does not get ready is found before the first task needs it: each is started alone, by
// a warden, as the daemon would do it, and ended again.

#include "cli/check.h"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "app/executors.h"
#include "app/program.h"
#include "app/state_dir.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/try.h"
#include "exec/privileges.h"
#include "exec/process_host.h"
#include "exec/warden.h"
#include "worker/worker_runner.h"

namespace lictor::app {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds{5};
// The time for a process that did not get ready to be ended and reported.
constexpr Duration kEndsWithin = std::chrono::seconds{5};

cli::CheckOptions::Worker try_worker(worker::Room& room, const QueueConfig& queue,
                                     const std::string& type, WorkerConfig options,
                                     const std::optional<exec::User>& owner) {
  cli::CheckOptions::Worker tried{queue.options.queue, type, {}, {}};
  options.queue = queue.options.queue;
  options.type = type;
  options.program.grace = queue.options.kill_grace;
  if (!options.program.user) options.program.user = owner;
  const Instant begin = boot_now();
  const Instant until = begin + options.start_timeout + kEndsWithin;
  auto runner = worker::WorkerRunner::create(room, std::move(options));
  if (!runner) {
    tried.error = runner.error().message;
    return tried;
  }
  (*runner)->warm();
  worker::Figures figures = (*runner)->figures();
  while (figures.idle == 0 && figures.start_error.empty() && boot_now() < until) {
    std::this_thread::sleep_for(kLookEvery);
    figures = (*runner)->figures();
  }
  tried.ready_after = boot_now() - begin;
  if (figures.idle == 0) {
    tried.error = figures.start_error.empty() ? "it does not end" : figures.start_error;
  }
  return tried;
}

struct CheckFlags {
  bool strict = false;  // warnings count as failures
  std::string role;     // the role of the token: "daemon", "reader"; empty: by the configuration
};

// The file is loaded twice. A client's configuration says what to check in Consul. A daemon's also
// needs programs and users on this host; an error there is a finding among others, not the end.
Result<int> check(const Program& program, const CheckFlags& flags) {
  cli::CheckOptions options;
  options.strict = flags.strict;
  auto config = load(program.load_request(Mode::kClient));
  if (!config) {
    options.error = config.error();
    return cli::check(program.console, options, program.json);
  }
  if (auto added = with_registered(*config, program.registry)) {
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
    if (!program.queue || *program.queue == name) add({name, queue.layout}, queue);
  }
  if (options.queues.empty()) {
    LICTOR_TRY(const auto target, target_of(*config, program.queue));
    add(target, config->queues.front());
  }
  if (flags.role == "reader") options.serves = false;
  if (flags.role == "daemon") options.serves = true;
  if (options.serves) {
    const auto for_daemon = load_config(program.load_request(program.daemon_mode()));
    if (!for_daemon) options.daemon_error = for_daemon.error();
    if (for_daemon) options.workers = try_workers(*for_daemon);
    // Later: the code of a plug-in may start threads, and the warden is forked.
    if (for_daemon) {
      if (auto loaded = load_plugins(*for_daemon); !loaded) options.daemon_error = loaded.error();
    }
    options.state_dir = config->state_dir;
    options.state_dir_owner = state_dir_owner(config->state_dir);
    if (options.state_dir_owner.empty()) {
      options.state_dir_warning = state_dir_fault(config->state_dir);
    }
    if (options.state_dir_warning.empty()) {
      options.state_dir_warning = state_dir_exposure(config->state_dir);
    }
    const std::string few = descriptor_shortage(*config, most_descriptors());
    if (!few.empty()) options.warnings.push_back(few);
  }
  return cli::check(program.console, options, program.json);
}

}  // namespace

// Runs them under a warden of its own, as the daemon would, and for root as the owner of state_dir,
// whom the daemon runs as.
std::vector<cli::CheckOptions::Worker> try_workers(const Config& config) {
  std::vector<cli::CheckOptions::Worker> tried;
  const auto workers = executors_of<WorkerConfig>(config.queues);
  if (workers.empty()) return tried;
  const auto not_tried = [&](const Error& error) {
    return std::vector<cli::CheckOptions::Worker>{{"", "", {}, "not tried: " + error.message}};
  };
  std::optional<exec::User> owner;
  if (const std::string name = state_dir_owner(config.state_dir);
      ::geteuid() == 0 && !name.empty()) {
    auto found = exec::find_user(name);
    if (!found) return not_tried(found.error());
    owner = *std::move(found);
  }
  constexpr exec::LeaseSlot kFirst = 1;
  auto board = exec::LeaseBoard::create(kFirst + worker::kMostProcesses);
  if (!board) return not_tried(board.error());
  auto warden = exec::start_warden(*board, {});
  if (!warden) return not_tried(warden.error());
  auto host = exec::ProcessHost::create(std::move(*warden), *board, {});
  if (!host) return not_tried(host.error());
  worker::Room room{**host, kFirst};
  for (const auto& [queue, type, worker] : workers) {
    tried.push_back(try_worker(room, queue, type, worker, owner));
  }
  return tried;
}

void add_check(cli::Commands& to, Program& program) {
  auto [command, flags] = to.add_alone<CheckFlags>(
      "check", "Find what is wrong: configuration, Consul, rights, tasks",
      R"(Writes nothing to Consul. Starts each worker of the configuration once, to see whether it gets
ready, and ends it. The exit code is 0 if nothing failed, else that of the first failure.

Examples:
  lictor check
  lictor check --strict || page-someone
  lictor check --config ./lictor.json --token-file ./consul.token
  lictor check --role reader --token-file ./monitoring.token
  lictor check --json | jq '.checks[] | select(.status != "ok")'
)",
      [&program](const CheckFlags& read) { return check(program, read); });
  command.flag("--strict", flags.strict, "Exit with 1 if there is a warning");
  command.choice(
      "--role", flags.role,
      "Whose token it is, daemon or reader (default: the daemon's, where the configuration has "
      "executors)",
      "ROLE", {"daemon", "reader"});
}

}  // namespace lictor::app
