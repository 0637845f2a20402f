#include "app/command_options.h"

#include <charconv>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/text.h"
#include "base/time_text.h"
#include "cli/input.h"

namespace lictor::app {
namespace {

// Flags that say where, for all commands; before the command's name or after it.
constexpr const char* kGlobals = R"(
Everywhere: --config FILE, --queue NAME, --root PREFIX, --consul ADDRESS, --token-file FILE,
--json (see "lictor --help")
)";

constexpr const char* kAboutSubmit =
    R"(The id is printed. A task that exists already is left as it is (exit code 1).

With --wait the exit code tells how it ended: 0 done, 1 dead. A task that somebody withdraws
counts as done, since it leaves no trace. Where the queue keeps a history, the result that the
task left is printed as JSON after the id.

With --ndjson each line is a record: {"taskId": "42", "taskType": "Notify", "taskPara": {}}.
taskId and taskTime are made where they are missing, taskType is TYPE. Tasks without a time
of their own start in the order of the lines: no leader at work finds a line before those
above it. With --any-order it may, which is faster, for what may start in any order, or later.
A line waits at most a fifth of a second for those after it. The exit code is 1 if any line
was refused; 4 if Consul went away in the middle: the lines in doubt are named then, and none
after them was sent. Ctrl-C ends what is under way, and it says after which line.

Examples:
  lictor submit CreateTableSpace --para instanceId=db7 --para initSize=8000
  lictor submit Notify --para-json '{"to": ["ops"]}' --in 10m
  lictor submit Report --at 2026-11-21T09:30:00Z --serial-key reports --id report-7
  lictor submit Backup --para host=db7 --wait --wait-timeout 1h && echo done
  lictor submit Notify --ndjson tasks.ndjson
  jq -c .tasks[] export.json | lictor submit --ndjson -
)";

// An option with a value, of which the last counts. `target`: a text, optional or not.
template <class Target>
CLI::Option* add_text(CLI::App* app, const char* names, Target& target, const char* what,
                      const char* form) {
  return app->add_option(names, target, what)->type_name(form)->take_last();
}

CLI::Option* add_switch_off(CLI::App* app, const char* name, bool& target, const char* what) {
  return app->add_flag_function(
      name, [&target](std::int64_t) { target = false; }, what);
}

void add_id(CLI::App* app, std::string& target) {
  app->add_option("ID", target, "The task's id")->required()->type_name("");
}

// A whole number from `least` on.
template <class Target>
CLI::Option* add_count(CLI::App* app, const char* name, Target& target, const char* what,
                       std::uint32_t least) {
  const auto fault = [least](const std::string& text) {
    std::uint32_t count = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, count);
    if (read.ec == std::errc{} && read.ptr == end && count >= least) return std::string{};
    return "expected a whole number from " + std::to_string(least) + " on, got \"" + excerpt(text) +
           '"';
  };
  return app->add_option(name, target, what)->type_name("N")->check(fault, "");
}

// `target`: a Duration, optional or not.
template <class Target>
CLI::Option* add_duration(CLI::App* app, const char* name, Target& target, const char* what) {
  const auto fault = [](const std::string& text) {
    if (parse_duration(text)) return std::string{};
    return R"(expected a duration such as "90s", "10m" or "2h", got ")" + excerpt(text) + '"';
  };
  const auto take = [&target](const std::string& text) { target = *parse_duration(text); };
  return app->add_option_function<std::string>(name, take, what)
      ->type_name("DURATION")
      ->take_last()
      ->check(fault, "");
}

// IDs or --all, one of which must be there, and the filters that narrow --all down. Gives --all.
template <class Options>
CLI::Option* add_choice(CLI::App* app, Options& options, const char* what, const char* all_what) {
  CLI::Option* ids = app->add_option("ID", options.ids, what)->type_name("");
  CLI::Option* all = app->add_flag("--all", options.all, all_what)->excludes(ids);
  app->final_callback([&options] {
    if (options.ids.empty() && !options.all) throw CLI::RequiredError("ID or --all");
  });
  if constexpr (requires { options.state; }) {
    add_text(app, "--state", options.state, "Only those that are waiting, scheduled or running",
             "STATE")
        ->needs(all);
  }
  add_text(app, "--type", options.type, "Only those of this type", "TYPE")->needs(all);
  if constexpr (requires { options.reason; }) {
    add_text(app, "--reason", options.reason, "Only those of this reason", "TEXT")->needs(all);
  }
  return all;
}

struct SubmitArguments {
  cli::SubmitOptions one;
  std::string type;
  std::optional<std::string> ndjson_file;
  bool any_order = false;

  // Throws what CLI11 does.
  [[nodiscard]] Command command() const {
    if (ndjson_file) {
      return cli::SubmitManyOptions{*ndjson_file, type,
                                    any_order ? SubmitOrder::kAny : SubmitOrder::kAsGiven};
    }
    const auto refuse = [](const std::string& what) {
      throw CLI::ParseError(what, CLI::ExitCodes::RequiredError);
    };
    if (type.empty()) refuse("TYPE is required: the kind of task");
    cli::SubmitOptions options = one;
    options.task.type = type;
    if (auto& para_json = options.task.para_json) {
      auto text = cli::read_argument("--para-json", *para_json);
      if (!text) refuse(text.error().message);
      para_json = std::move(*text);
    }
    return options;
  }
};

}  // namespace

CommandOptions::CommandOptions(CLI::App& app, Invocation& invocation)
    : app_(app), invocation_(invocation) {
  add_globals();
  add_run();  // in the order in which the help lists them
  add_submit();
  add_lookups();
  add_cancel_and_retry();
  add_dead();
  add_pause();
  add_logs();
  add_leader();
  add_tools();
}

CLI::App* CommandOptions::add_command(CLI::App& parent, const char* name, const char* description,
                                      const char* about) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->group("Commands");
  command->footer(std::string{about} + kGlobals);
  return command;
}

// A command that gives its `Options`, into which its arguments are read.
template <class Options>
std::pair<CLI::App*, Options*> CommandOptions::add(const char* name, const char* description,
                                                   const char* about, CLI::App* parent) {
  CLI::App* command = add_command(parent != nullptr ? *parent : app_, name, description, about);
  const auto options = std::make_shared<Options>();
  commands_[command] = [options]() -> Command {
    if constexpr (requires { options->command(); }) {
      return options->command();
    } else {
      return *options;
    }
  };
  return {command, options.get()};
}

void CommandOptions::add_globals() {
  Overrides& overrides = invocation_.overrides;
  add_text(&app_, "--config", overrides.config,
           "The configuration (default: /etc/lictor/lictor.json, if it is there)", "FILE");
  add_text(&app_, "--queue", invocation_.queue,
           "The queue (default: the only one of the configuration, or \"default\")", "NAME");
  add_text(&app_, "--root", overrides.root,
           "What all of lictor's keys begin with (default: lictor/)", "PREFIX");
  add_text(&app_, "--consul", overrides.consul_addresses,
           "Consul's HTTP address, or several with commas between "
           "(default: http://127.0.0.1:8500)",
           "ADDRESS");
  add_text(&app_, "--token-file", overrides.token_file, "A file with the ACL token", "FILE");
  app_.add_flag("--json", invocation_.json, "Print one JSON document instead of text");
}

void CommandOptions::add_run() {
  const auto [run, options] =
      add<RunCommand>("run", "Run the daemon, until SIGTERM or SIGINT", R"(Examples:
  lictor run                              with /etc/lictor/lictor.json
  lictor run --config ./lictor.json --dry-run
  lictor run --config ./lictor.json --once
)");
  run->add_flag("--once", options->once, "End when no due tasks are left");
  run->add_flag("--dry-run", options->dry_run,
                "Check the configuration, say what would be run, and end");
  Overrides& overrides = invocation_.overrides;
  add_text(run, "--node", overrides.node, "This member's name (default: the host's)", "NAME");
  add_text(run, "--state-dir", overrides.state_dir, "Where state is kept", "FOLDER");
  add_text(run, "--log-level", overrides.log_level, "trace, debug, info, warn or error", "LEVEL");
  add_text(run, "--log-format", overrides.log_format, "text, json or journal", "FORMAT");
}

void CommandOptions::add_submit() {
  const auto [submit, options] =
      add<SubmitArguments>("submit", "Write a task, or many", kAboutSubmit);
  cli::TaskText& task = options->one.task;
  submit->add_option("TYPE", options->type, "Picks the executor")->type_name("");
  const std::size_t first_of_one = submit->get_options().size();
  add_text(submit, "--id", task.id, "Its id (default: a new one, ordered by time)", "ID");
  submit->add_option("--para", task.paras, "A parameter, as a string")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_text(submit, "--para-json", task.para_json,
           "The parameters as JSON, from a file, or from standard input", "JSON|@FILE|-");
  CLI::Option* at =
      add_text(submit, "--at", task.at, "Not before: RFC 3339, or seconds since the epoch", "TIME");
  add_text(submit, "--in", task.in, "Not before this has passed", "DURATION")->excludes(at);
  CLI::Option* expire_at = add_text(submit, "--expire-at", task.expire_at,
                                    "A dead letter if not started by then: as --at", "TIME");
  add_text(submit, "--expire-in", task.expire_in, "A dead letter if not started by then",
           "DURATION")
      ->excludes(expire_at);
  add_text(submit, "--task-time", task.task_time, "Its place in the order (default: now)", "TIME");
  add_text(submit, "--serial-key", task.serial_key, "Tasks of one key run one after the other",
           "KEY");
  add_count(submit, "--max-attempts", task.max_attempts,
            "Dead after so many (default: the executor's setting)", 1);
  add_text(submit, "--timeout", task.timeout,
           "End an attempt after this (default: the executor's setting)", "DURATION");
  add_text(submit, "--backoff", task.backoff,
           "Wait so long after the first failure (default: the executor's)", "DURATION");
  CLI::Option* wait =
      submit->add_flag("--wait", options->one.wait, "Wait until it is done or dead");
  add_duration(submit, "--wait-timeout", options->one.wait_timeout,
               "Wait no longer than this (exit code 1)")
      ->needs(wait);
  const std::vector<CLI::Option*> all = submit->get_options({});
  CLI::Option* ndjson =
      add_text(submit, "--ndjson", options->ndjson_file,
               "Write many: a record a line, from a file, or with - from standard input", "FILE|-");
  for (std::size_t i = first_of_one; i < all.size(); ++i) ndjson->excludes(all[i]);
  submit
      ->add_flag("--any-order", options->any_order,
                 "A leader may find a line before those above it: faster")
      ->needs(ndjson);
}

void CommandOptions::add_lookups() {
  const auto [list, list_options] = add<cli::ListOptions>(
      "list", "List the tasks",
      R"about(STATE is waiting, scheduled (not due yet), running, dead, done (where the queue keeps a
history; left out otherwise), unreadable, too_large or unnameable (its key is not UTF-8).
"running (orphan)": its owner died or leads no more, and whoever leads runs it again.

Examples:
  lictor list
  lictor list --state dead --type Notify
  lictor list --json | jq -r '.tasks[] | select(.attempt > 1) | .id'
)about");
  add_text(list, "--state", list_options->state, "Only those in this state", "STATE");
  add_text(list, "--type", list_options->type, "Only those of this type", "TYPE");
  add_count(list, "--limit", list_options->limit, "Show the first N (default: all)", 0);

  const auto [show, show_options] =
      add<ShowCommand>("show", "Show everything about a task, also a dead one", R"(Examples:
  lictor show 42
  lictor show 42 --json | jq .tasks[0].error
)");
  add_id(show, show_options->id);

  const auto [why, why_options] = add<WhyCommand>(
      "why", "Say why a task is not running",
      R"(Not due yet, paused, nobody leads, too large: what keeps a task from being started.

Examples:
  lictor why 42
  lictor why 42 --json | jq -r .reasons[]
)");
  add_id(why, why_options->id);

  const auto [events, events_options] = add<cli::EventsOptions>(
      "events", "Show what happened in a queue: claims, starts, ends, failures, leaders",
      R"(Asks the queue's leader, which keeps the last 1,000 events of its daemon. With --follow also what
happens from now on, until Ctrl-C; a new leader is followed by itself.

Examples:
  lictor events
  lictor events --follow --json | jq -r 'select(.event == "failed") | .task'
)");
  events->add_flag("-f,--follow", events_options->follow, "Go on with what happens from now on");

  add<StatsCommand>("stats", "Show what a queue's leader counts: tasks by state, jobs, the lease",
                    R"(Examples:
  lictor stats
  lictor stats --json | jq .states
)");
}

void CommandOptions::add_cancel_and_retry() {
  const auto [cancel, cancelled] = add<cli::CancelOptions>(
      "cancel", "Withdraw tasks; stop their jobs",
      R"(Deletes the task, in whatever state it is. The leader then stops the job of a running one:
TERM, and after kill_grace KILL. A task that is not there is exit code 3. With --all, what has
ended in the meantime is no failure.

Examples:
  lictor cancel 42 43
  lictor cancel --all --type Notify
  lictor cancel --all --state scheduled --yes
)");
  CLI::Option* all =
      add_choice(cancel, *cancelled, "The tasks' ids", "All tasks that the filters let through");
  cancel->add_flag("--yes", cancelled->yes, "Do not ask")->needs(all);

  const auto [retry, retried] = add<cli::RetryOptions>(
      "retry", "Make dead letters waiting tasks again",
      R"(A dead letter becomes a waiting task again, with the record that its producer wrote and none of
its attempts. Of several dead letters of one task the newest is taken; ID~2 names one. A task
of that id that waits or runs is left as it is (exit code 1).

Examples:
  lictor retry 42
  lictor retry 42~2
  lictor retry --all --type CreateTableSpace
  lictor retry --all --reason expired --drop-expiry
)");
  all = add_choice(retry, *retried, "The tasks' ids",
                   "All dead letters that the filters let through");
  retry->add_flag("--drop-expiry", retried->drop_expiry, "Take expireAt out");
  // Nothing is lost by it, so nothing is asked; what is said to the others may be said to it.
  retry
      ->add_flag_function(
          "--yes", [](std::int64_t) {}, "Do not ask (it never does)")
      ->needs(all);
}

void CommandOptions::add_dead() {
  CLI::App* dead = add_command(app_, "dead", "List, show or delete dead letters", R"(Examples:
  lictor dead list --reason unreadable
  lictor dead show 42
  lictor dead purge --all --older-than 720h
)");
  dead->require_subcommand(1);
  constexpr const char* kOlder = "Only those that are dead for longer";
  const auto [list, listed] =
      add<cli::DeadListOptions>("list", "List the dead letters", R"(Examples:
  lictor dead list
  lictor dead list --type Notify --older-than 24h
  lictor dead list --json | jq -r '.tasks[] | [.id, .reason] | @tsv'
)",
                                dead);
  add_text(list, "--type", listed->type, "Only those of this type", "TYPE");
  add_text(list, "--reason", listed->reason, "Only those of this reason", "TEXT");
  add_duration(list, "--older-than", listed->older_than, kOlder);
  add_count(list, "--limit", listed->limit, "Show the first N (default: all)", 0);

  const auto [show, shown] =
      add<cli::DeadShowOptions>("show", "Show everything about dead letters", R"(Examples:
  lictor dead show 42                     all of its dead letters
  lictor dead show 42~2 --json | jq .tasks[0].value.record
)",
                                dead);
  add_id(show, shown->id);

  const auto [purge, purged] = add<cli::DeadPurgeOptions>(
      "purge", "Delete dead letters",
      R"(Deletes for good. On a terminal it asks first; elsewhere --all needs --yes.

Examples:
  lictor dead purge 42 42~2
  lictor dead purge --all --reason unreadable --older-than 24h --yes
)",
      dead);
  CLI::Option* all =
      add_choice(purge, *purged, "The dead letters' ids", "All that the filters let through");
  add_duration(purge, "--older-than", purged->older_than, kOlder)->needs(all);
  purge->add_flag("--yes", purged->yes, "Do not ask");
}

void CommandOptions::add_pause() {
  const auto [pause, options] =
      add<cli::PauseOptions>("pause", "Start no more tasks until resumed",
                             R"(Running jobs go on; nothing is started until "lictor resume".

Examples:
  lictor pause --reason 'the database is being moved'
  lictor pause --queue oracle
)");
  add_text(pause, "--reason", options->reason, "Why, for the others", "TEXT");
  add<cli::ResumeOptions>("resume", "Start tasks again", R"(Examples:
  lictor resume
  lictor resume --json | jq .changed
)");
}

void CommandOptions::add_logs() {
  const auto [logs, options] = add<cli::LogsOptions>(
      "logs", "Print what a task's program printed",
      R"(What the program printed, from whichever member ran it; over the members' admin faces. Ends
with --follow when the attempt does. With --json: which attempts' logs there are, and where.

Examples:
  lictor logs 42
  lictor logs 42 --follow
  lictor logs 42 --attempt 1 --node host-a
)");
  add_id(logs, options->id);
  logs->add_flag("-f,--follow", options->follow, "Go on until the attempt ends");
  add_count(logs, "--attempt", options->attempt, "Of this attempt (default: the newest)", 1);
  add_text(logs, "--node", options->node, "Ask this member alone", "NODE");
}

void CommandOptions::add_leader() {
  add<MembersCommand>("members", "List the daemons that take part", R"(Examples:
  lictor members
  lictor members --json | jq -r .members[].admin[0]
)");
  const auto [leader, options] =
      add<cli::LeaderOptions>("leader", "Show who leads the queue, or move the lead",
                              R"(The exit code is 3 if nobody leads.

Examples:
  lictor leader
  lictor leader --step-down               and wait until another one leads
  lictor leader --step-down --no-wait
)");
  CLI::Option* step_down = leader->add_flag("--step-down", options->step_down,
                                            "Ask the leader to hand over, and wait for it");
  CLI::Option* no_wait =
      add_switch_off(leader, "--no-wait", options->wait, "Ask, and do not wait")->needs(step_down);
  add_duration(leader, "--timeout", options->timeout, "Wait no longer than this (default: 30s)")
      ->needs(step_down)
      ->excludes(no_wait);
}

void CommandOptions::add_tools() {
  add<CheckCommand>("check", "Look for what is wrong: configuration, Consul, rights, tasks",
                    R"(Writes nothing. The exit code is 0 if nothing failed.

Examples:
  lictor check
  lictor check --config ./lictor.json --token-file ./consul.token
  lictor check --json | jq '.checks[] | select(.status != "ok")'
)");
  const auto [dev, dev_options] = add<DevCommand>(
      "dev", "Try it out without a Consul: a store and a worker in one",
      R"(Keys, sessions, transactions and blocking queries as a Consul agent answers them, in memory:
nothing is kept. Without --config every task is printed and done, until a "lictor run" is
started beside it.

Examples:
  lictor dev
  lictor dev --no-worker & lictor run --config ./lictor.json
  lictor dev --listen 127.0.0.1:0 --config ./lictor.json
)");
  add_text(dev, "--listen", dev_options->listen,
           "Where the store listens (default: 127.0.0.1:8500; port 0: any)", "ADDRESS");
  add_switch_off(dev, "--no-worker", dev_options->worker, "The store alone");

  const auto [bench, bench_options] = add<cli::BenchOptions>(
      "bench", "Measure lictor beside Consul alone",
      R"(Runs a daemon of its own with no-op tasks, and the same writes without lictor, below the prefix
lictor-bench/, which is empty again afterwards. Loads Consul for about a minute.

Examples:
  lictor bench
  lictor bench --tasks 20000 --json | jq '.measured[] | {name, ratio}'
)");
  add_count(bench, "--tasks", bench_options->tasks, "How many, for each figure (default: 2000)", 1);
  add<VersionCommand>("version", "Say which version this is", R"(Examples:
  lictor version
  lictor version --json | jq -r .version
)");
}

}  // namespace lictor::app
