#include "app/command_options.h"

namespace lictor::app {
namespace {

// A task as far as an executor sees it.
struct TryArguments {
  TryCommand command_;

  [[nodiscard]] Command command() const {
    TryCommand read = command_;
    read_parameters(read.task);
    return read;
  }
};

void add_try(Adder& to) {
  const auto [app, arguments] = to.add<TryArguments>(
      "try", "Run one task by its executor, here and now, without Consul",
      R"(Starts what the configuration gives to the type, as the daemon would, with the same user, limits,
environment and timeout, and prints its output and what would have become of the task. Nothing is
written to Consul, and no daemon is needed. An http executor sends its request to the real receiver.
The exit code is 0 if the task would be done, 3 if the type has no executor, else 1.

Examples:
  lictor try Invoice --para order=A-17
  lictor try CreateTableSpace --config ./lictor.json --para instanceId=db7 --para initSize:=8000
  lictor try Report --json | jq .result
)");
  cli::TaskText& task = arguments->command_.task;
  app->add_option("TYPE", task.type, "The kind of task; picks the executor")
      ->required()
      ->type_name("");
  add_text(app, "--id", task.id, "The task's id (default: a new one)", "ID");
  add_parameters(app, task);
  add_text(app, "--timeout", task.timeout,
           "End the attempt after this (default: the executor's setting)", "DURATION");
}

}  // namespace

void add_tools(Adder& to) {
  const auto [check, check_options] = to.add<CheckCommand>(
      "check", "Find what is wrong: configuration, Consul, rights, tasks",
      R"(Writes nothing. The exit code is 0 if nothing failed, else that of the first failure.

Examples:
  lictor check
  lictor check --strict || page-someone
  lictor check --config ./lictor.json --token-file ./consul.token
  lictor check --role reader --token-file ./monitoring.token
  lictor check --json | jq '.checks[] | select(.status != "ok")'
)");
  check->add_flag("--strict", check_options->strict, "Exit with 1 if there is a warning");
  add_text(
      check, "--role", check_options->role,
      "Whose token it is, daemon or reader (default: the daemon's, where the configuration has "
      "executors)",
      "ROLE")
      ->check(CLI::IsMember({"daemon", "reader"}));
  const auto [dev, dev_options] = to.add<DevCommand>(
      "dev", "Try lictor without Consul: a store and a worker in one",
      R"(Serves keys, sessions, transactions and blocking queries as a Consul agent does, in memory: nothing
is kept. Without --config every task is printed and counts as done, until a "lictor run" is started
beside it.

Examples:
  lictor dev
  lictor dev --no-worker & lictor run --config ./lictor.json
  lictor dev --listen 127.0.0.1:0 --config ./lictor.json
)");
  add_text(dev, "--listen", dev_options->listen,
           "Where the store listens (default: 127.0.0.1:8500; port 0: any)", "ADDRESS");
  add_switch_off(dev, "--no-worker", dev_options->worker, "Only the store");

  const auto [bench, bench_options] = to.add<cli::BenchOptions>(
      "bench", "Measure lictor beside Consul alone",
      R"(Runs a separate daemon with no-op tasks, and the same writes without lictor, below the prefix
lictor-bench/, which it empties afterwards. Loads Consul for about a minute.

Examples:
  lictor bench
  lictor bench --tasks 20000 --json | jq '.measured[] | {name, ratio}'
)");
  add_count(bench, "--tasks", bench_options->tasks, "Tasks for each figure (default: 2000)", 1);
  add_try(to);
  to.add<VersionCommand>("version", "Show the version", R"(Examples:
  lictor version
  lictor version --json | jq -r .version
)");
}

}  // namespace lictor::app
