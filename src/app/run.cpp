// lictor run: the daemon, and with --dry-run its plan.

#include <csignal>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "app/daemon.h"
#include "app/executors.h"
#include "app/program.h"
#include "base/printable.h"
#include "base/read_file.h"
#include "base/try.h"
#include "cli/check.h"
#include "exec/init.h"
#include "net/transport.h"

namespace lictor::app {
namespace {

struct RunFlags {
  bool once = false;
  bool dry_run = false;
};

Result<int> print_plan(const Config& config, cli::Console& console) {
  // The daemon does not start without these files.
  LICTOR_TRY(const auto transport, net::Transport::open(config.consul.options));
  if (!config.admin.token_file.empty()) {
    LICTOR_TRY(const auto token, read_token_file(config.admin.token_file));
  }
  if (auto loaded = load_plugins(config); !loaded) {
    return tl::unexpected(std::move(loaded.error()));
  }
  for (const std::string& warning : config.warnings) console.report_error(warning);
  console.print(fmt::format("node {}, Consul at {}, state in {}\n", config.node,
                            config.consul.options.addresses.front(), config.state_dir));
  console.print(cli::connections_text(config.queues.size(), !config.admin.listen.empty()) + '\n');
  for (const QueueConfig& queue : config.queues) {
    std::vector<std::string_view> types;
    for (const auto& [type, executor] : queue.executors) types.push_back(type);
    const std::size_t schedules = queue.options.schedules.size();
    const bool partitioned = queue.options.partitions > 1;
    console.print(fmt::format(
        "queue {}: tasks below {}, leader key {}, {}{} at a time{}, {}executors: {}\n",
        queue.options.queue, queue.layout.tasks_prefix, queue.layout.leader_key,
        partitioned ? fmt::format("{}, this host's weight {}, ",
                                  counted(queue.options.partitions, "partition"), queue.weight)
                    : "",
        counted(queue.options.concurrency, "task"), partitioned ? " on each host" : "",
        schedules == 0 ? "" : counted(schedules, "schedule") + ", ",
        types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
  }
  return cli::kDone;
}

Result<int> run(const Program& program, const RunFlags& options) {
  const auto load_all = [&program]() -> Result<Config> {
    LICTOR_TRY(auto loaded, load(program.load_request(program.daemon_mode())));
    return with_registered(std::move(loaded), program.registry);
  };
  // A reload that is asked for during the start waits for its end.
  sigset_t reload;
  sigemptyset(&reload);
  sigaddset(&reload, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &reload, nullptr);
  LICTOR_TRY(const auto config, load_all());
  if (!options.dry_run) {
    hide_secrets();
    exec::leave_pid_1();
    return run_daemon(config, program.registry, {options.once, load_all});
  }

  return print_plan(config, program.console);
}

}  // namespace

void add_run(cli::Commands& to, Program& program) {
  auto [command, options] =
      to.add_alone<RunFlags>("run", "Run the daemon, until SIGTERM or SIGINT", R"(Examples:
  lictor run                              with /etc/lictor/lictor.json
  lictor run --config ./lictor.json --dry-run
  lictor run --config ./lictor.json --once
)",
                             [&program](const RunFlags& read) { return run(program, read); });
  command.flag("--once", options.once, "End when this daemon leads and no due tasks are left");
  command.flag("--dry-run", options.dry_run,
               "Check the configuration, print what would be run, and end");
  Overrides& overrides = program.overrides;
  command.text("--node", overrides.node, "This member's name (default: the host's)", "NAME");
  command.text("--state-dir", overrides.state_dir, "The folder for the daemon's state", "FOLDER");
  command.text("--log-level", overrides.log_level, "trace, debug, info, warn or error", "LEVEL");
  command.text("--log-format", overrides.log_format, "text, json or journal", "FORMAT");
}

}  // namespace lictor::app
