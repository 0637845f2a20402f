#include "app/command_options.h"

#include "cli/input.h"

namespace lictor::app {
namespace {

constexpr const char* kAboutSubmit =
    R"(The id is printed. A task that exists already is left as it is (exit code 1).

With --wait the exit code is 0 if the task is done, 1 if it is dead and 6 if it was cancelled.
In a queue without history, a task that was deleted, or cancelled by "cancel --all", counts as done.
With a history, the task's result is printed as JSON after the id.

With --ndjson each line is a record: {"taskId": "42", "taskType": "Notify", "taskPara": {}}.
A missing taskId or taskTime is generated; a missing taskType is TYPE. Tasks without a taskTime
start in the order of the lines: the leader never finds a line before earlier lines. With
--any-order it may, which is faster. A line waits at most 0.2 s for the lines after it. The exit
code is 1 if a line was refused, and 4 if Consul stopped answering: lines whose result is unknown
are named, and no line after them was sent. Ctrl-C finishes the requests under way and reports the
last line.

Examples:
  lictor submit CreateTableSpace --para instanceId=db7 --para initSize:=8000
  lictor submit Notify --para-json '{"to": ["ops"]}' --in 10m
  lictor submit Report --at 2026-11-21T09:30:00Z --serial-key reports --id report-7
  lictor submit Backup --para host=db7 --wait --wait-timeout 1h && echo done
  lictor submit Notify --ndjson tasks.ndjson
  jq -c .tasks[] export.json | lictor submit --ndjson -
)";

void add_id(CLI::App* app, std::string& target) {
  app->add_option("ID", target, "The task's id")->required()->type_name("");
}

// --since: a time, or a duration until now.
void add_since(CLI::App* app, std::optional<WallTime>& target) {
  app->add_option_function<std::string>(
         "--since",
         [&target](const std::string& text) {
           if (const auto ago = parse_duration(text)) {
             target = wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*ago);
             return;
           }
           const auto time = cli::time_argument(text);
           if (!time) throw CLI::ValidationError("--since", time.error().message);
           target = *time;
         },
         "Only from this time on: RFC 3339, or a duration until now (10m)")
      ->type_name("TIME");
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
    read_parameters(options.task);
    return options;
  }
};

void add_globals(Adder& to) {
  Overrides& overrides = to.invocation.overrides;
  add_text(&to.app, "--config", overrides.config,
           "The configuration (default: /etc/lictor/lictor.json, if it is there)", "FILE");
  add_text(&to.app, "-q,--queue", to.invocation.queue,
           "The queue (default: the only one of the configuration, or \"default\")", "NAME");
  add_text(&to.app, "--root", overrides.root, "The prefix of all keys of lictor (default: lictor/)",
           "PREFIX");
  add_text(&to.app, "--consul", overrides.consul_addresses,
           "Consul's HTTP addresses, separated by commas "
           "(default: http://127.0.0.1:8500)",
           "ADDRESS");
  add_text(&to.app, "--token-file", overrides.token_file, "A file with the ACL token", "FILE");
  to.app.add_flag("--json", to.invocation.json, "Print one JSON document instead of text");
}

void add_run(Adder& to) {
  const auto [run, options] =
      to.add<RunCommand>("run", "Run the daemon, until SIGTERM or SIGINT", R"(Examples:
  lictor run                              with /etc/lictor/lictor.json
  lictor run --config ./lictor.json --dry-run
  lictor run --config ./lictor.json --once
)");
  run->add_flag("--once", options->once, "End when no due tasks are left");
  run->add_flag("--dry-run", options->dry_run,
                "Check the configuration, print what would be run, and end");
  Overrides& overrides = to.invocation.overrides;
  add_text(run, "--node", overrides.node, "This member's name (default: the host's)", "NAME");
  add_text(run, "--state-dir", overrides.state_dir, "The folder for the daemon's state", "FOLDER");
  add_text(run, "--log-level", overrides.log_level, "trace, debug, info, warn or error", "LEVEL");
  add_text(run, "--log-format", overrides.log_format, "text, json or journal", "FORMAT");
}

void add_submit(Adder& to) {
  const auto [submit, options] =
      to.add<SubmitArguments>("submit", "Write a task, or many", kAboutSubmit);
  cli::TaskText& task = options->one.task;
  submit->add_option("TYPE", options->type, "The kind of task; picks the executor")->type_name("");
  const std::size_t first_of_one = submit->get_options().size();
  add_text(submit, "--id", task.id, "The task's id (default: a new one, ordered by time)", "ID");
  add_parameters(submit, task);
  CLI::Option* at = add_text(submit, "--at", task.at,
                             "Not before this time: RFC 3339, or seconds since the epoch", "TIME");
  add_text(submit, "--in", task.in, "Not before this time has passed", "DURATION")->excludes(at);
  CLI::Option* expire_at = add_text(submit, "--expire-at", task.expire_at,
                                    "A dead letter if not started by then: as --at", "TIME");
  add_text(submit, "--expire-in", task.expire_in, "A dead letter if not started by then",
           "DURATION")
      ->excludes(expire_at);
  add_text(submit, "--task-time", task.task_time, "The place in the order (default: now)", "TIME");
  add_limits(submit, task);
  CLI::Option* wait =
      submit->add_flag("--wait", options->one.wait, "Wait until the task is done or dead");
  add_duration(submit, "--wait-timeout", options->one.wait_timeout,
               "Stop waiting after this, with exit code 1")
      ->needs(wait);
  const std::vector<CLI::Option*> all = submit->get_options({});
  CLI::Option* ndjson = add_text(
      submit, "--ndjson", options->ndjson_file,
      "Write many: one record a line, from a file or, with -, from standard input", "FILE|-");
  for (std::size_t i = first_of_one; i < all.size(); ++i) ndjson->excludes(all[i]);
  submit
      ->add_flag("--any-order", options->any_order,
                 "Faster; a leader may find a line before earlier lines")
      ->needs(ndjson);
}

void add_lookups(Adder& to) {
  const auto [list, list_options] = to.add<cli::ListOptions>(
      "list", "List the tasks",
      R"about(STATE is waiting, scheduled (not due yet), retrying (scheduled again after a failure),
running, dead, done (where the queue keeps a history; left out otherwise), unreadable, too_large or
unnameable (its key is not UTF-8).
"running (orphan)": the task's owner died or lost the lead; the next leader runs the task again.

Examples:
  lictor list
  lictor list --state dead --type Notify
  lictor list --json | jq -r '.tasks[] | select(.attempt > 1) | .id'
)about");
  add_text(list, "--state", list_options->state, "Only those in this state", "STATE");
  add_text(list, "--type", list_options->type, "Only those of this type", "TYPE");
  add_count(list, "--limit", list_options->limit, "Show the first N (default: all)", 0);
  list->add_flag("--watch", list_options->watch, "Show it again every two seconds, until Ctrl-C");

  const auto [show, show_options] =
      to.add<ShowCommand>("show", "Show everything about a task, also a dead one", R"(Examples:
  lictor show 42
  lictor show 42 --json | jq .tasks[0].error
)");
  add_id(show, show_options->id);

  const auto [why, why_options] = to.add<WhyCommand>(
      "why", "Show why a task is not running",
      R"(Names what keeps a task from being started: not due yet, paused, nobody leads, too large.

Examples:
  lictor why 42
  lictor why 42 --json | jq -r '.reasons[].text'
)");
  add_id(why, why_options->id);

  const auto [events, events_options] = to.add<cli::EventsOptions>(
      "events", "Show what happened in a queue: claims, starts, ends, failures, leaders",
      R"(Asks the queue's leaders, which keep the last 1,000 events of their daemons. --follow also
prints new events until Ctrl-C, and goes on with a new leader. Daemons keep no event of a queue that
they do not serve, and none from before their start.

Examples:
  lictor events --task 42
  lictor events --since 10m --type Notify -n 20
  lictor events --follow --json | jq -r 'select(.event == "failed") | .task_id'
)");
  events->add_flag("-f,--follow", events_options->follow, "Also print new events, until Ctrl-C");
  add_text(events, "--task", events_options->task, "Only those of this task", "ID");
  add_text(events, "--type", events_options->type, "Only those of tasks of this type", "TYPE");
  add_since(events, events_options->since);
  add_count(events, "-n", events_options->last, "Of those that are kept only the newest N", 1);

  to.add<StatsCommand>("stats",
                       "Show what a queue's leader counts: tasks by state, jobs, the lease",
                       R"(Examples:
  lictor stats
  lictor stats --json | jq .states
)");

  to.add<TopCommand>(
      "top", "Watch a queue on the full screen",
      R"(Shows leader, members, counts, what is wrong, running jobs and the newest failures.
Asks the daemon of this host, else the leader. Keys: up and down choose a task, w tells why it is
not running, c cancels it, r runs a failed one again, t shows the waiting tasks, then the scheduled
ones, p pauses the queue and asks for the reason, or resumes it, q quits. Each change is asked about
first.

Examples:
  lictor top
  lictor top --queue night
)");
}

void add_cancel_and_retry(Adder& to) {
  const auto [cancel, cancelled] = to.add<cli::CancelOptions>(
      "cancel", "Withdraw tasks; stop their jobs",
      R"(Deletes the task in any state. The leader then stops the job of a running task: TERM, and KILL after
kill_grace. The exit code is 3 if the task does not exist. With --all, a task that has ended in the
meantime is no failure.

Examples:
  lictor cancel 42 43
  lictor cancel --all --type Notify
  lictor cancel --all --state scheduled --yes
)");
  CLI::Option* all =
      add_choice(cancel, *cancelled, "The tasks' ids", "All tasks that the filters let through");
  cancel->add_flag("--yes", cancelled->yes, "Do not ask")->needs(all);

  const auto [retry, retried] = to.add<cli::RetryOptions>(
      "retry", "Make dead letters waiting tasks again",
      R"(A dead letter becomes a waiting task again, with its producer's record and no attempts. If a task has
several dead letters, the newest is taken; "lictor dead list" shows the names of the others, such as
42,5710. A task of the same id that waits or runs is left as it is (exit code 1).

Examples:
  lictor retry 42
  lictor retry 42,5710
  lictor retry --all --type CreateTableSpace
  lictor retry --all --reason expired --drop-expiry
)");
  all = add_choice(retry, *retried, "The tasks' ids",
                   "All dead letters that the filters let through");
  retry->add_flag("--drop-expiry", retried->drop_expiry, "Remove expireAt");
  // retry loses nothing, so it never asks; --yes is accepted as in cancel and dead purge.
  retry
      ->add_flag_function(
          "--yes", [](std::int64_t) {}, "Accepted, as in cancel; retry never asks")
      ->needs(all);
}

void add_dead(Adder& to) {
  CLI::App* dead = Adder::group(to.app, "dead", "List, show or delete dead letters", R"(Examples:
  lictor dead list --reason unreadable
  lictor dead show 42
  lictor dead purge --all --older-than 720h
)");
  dead->require_subcommand(1);
  constexpr const char* kOlder = "Only those that died longer ago than this";
  const auto [list, listed] =
      to.add<cli::DeadListOptions>("list", "List the dead letters", R"(Examples:
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
      to.add<cli::DeadShowOptions>("show", "Show everything about dead letters", R"(Examples:
  lictor dead show 42                     all of its dead letters
  lictor dead show 42,5710 --json | jq .tasks[0].value.record
)",
                                   dead);
  add_id(show, shown->id);

  const auto [purge, purged] = to.add<cli::DeadPurgeOptions>(
      "purge", "Delete dead letters",
      R"(Deletes for good. Asks first on a terminal; without a terminal --all needs --yes.

Examples:
  lictor dead purge 42 42,5710
  lictor dead purge --all --reason unreadable --older-than 24h --yes
)",
      dead);
  CLI::Option* all =
      add_choice(purge, *purged, "The dead letters' ids", "All that the filters let through");
  add_duration(purge, "--older-than", purged->older_than, kOlder)->needs(all);
  purge->add_flag("--yes", purged->yes, "Do not ask");
}

void add_pause(Adder& to) {
  const auto [pause, options] = to.add<cli::PauseOptions>(
      "pause", "Start no more tasks until resumed",
      R"(Running jobs go on; no new tasks are started until "lictor resume".

Examples:
  lictor pause --reason 'the database is being moved'
  lictor pause --queue oracle
)");
  add_text(pause, "--reason", options->reason, "Why, shown to others", "TEXT");
  to.add<cli::ResumeOptions>("resume", "Start tasks again", R"(Examples:
  lictor resume
  lictor resume --json | jq .changed
)");
}

void add_logs(Adder& to) {
  const auto [logs, options] = to.add<cli::LogsOptions>(
      "logs", "Print what a task's program printed",
      R"(Prints a program's output, from the member that ran it, over the members' admin APIs. --follow
goes on to the task's end, over its retries and wherever it runs next; with --attempt to the end of
that attempt. --json lists the attempts that have logs, and where they are.

Examples:
  lictor logs 42
  lictor logs 42 --follow
  lictor logs 42 --attempt 1 --node host-a
)");
  add_id(logs, options->id);
  logs->add_flag("-f,--follow", options->follow, "Print until the task ends");
  add_count(logs, "--attempt", options->attempt, "The output of this attempt (default: the newest)",
            1);
  add_text(logs, "--node", options->node, "Ask only this member", "NODE");
}

void add_leader(Adder& to) {
  to.add<MembersCommand>(
      "members", "List the daemons that take part",
      R"(Where the queue has several partitions: also which of them each member leads, which members are
draining, and which partitions are free or about to move.

Examples:
  lictor members
  lictor members --json | jq -r .members[].admin[0]
)");
  const auto [leader, options] =
      to.add<cli::LeaderOptions>("leader", "Show who leads the queue, or move the lead",
                                 R"(The exit code is 3 if nobody leads.

Where the queue has several partitions, each has its leader: one line shows each, and the exit code
is 3 if one has none. --step-down asks all leaders, waits until each of their partitions has another
leader, and fails if one has not. Afterwards the daemons give each partition back to the host that it
belongs to. "lictor drain" empties a host.

Examples:
  lictor leader
  lictor leader --step-down               and wait until another one leads
  lictor leader --step-down --no-wait
)");
  CLI::Option* step_down = leader->add_flag("--step-down", options->step_down,
                                            "Ask the leader to hand over, and wait for it");
  leader->add_flag("--watch", options->watch, "Show it again every two seconds, until Ctrl-C")
      ->excludes(step_down);
  CLI::Option* no_wait =
      add_switch_off(leader, "--no-wait", options->wait, "Ask without waiting")->needs(step_down);
  add_duration(leader, "--timeout", options->timeout, "Stop waiting after this (default: 30s)")
      ->needs(step_down)
      ->excludes(no_wait);
}

void add_drain(Adder& to) {
  const auto [drain, options] = to.add<cli::DrainOptions>(
      "drain", "Make a host give all its partitions away",
      R"(HOST is a member's name. It gives its partitions to the other members, each when its jobs have
ended; jobs that still run after drain_timeout are stopped and run again elsewhere. It takes none
until "lictor undrain HOST", also after a restart. With --wait the exit code is 1 if it still leads
one after --wait-timeout. A queue with one partition has nothing to drain (exit code 2): use
"lictor leader --step-down".

Examples:
  lictor drain host-a
  lictor drain host-a --wait --wait-timeout 10m && ssh host-a reboot
)");
  drain->add_option("HOST", options->host, "The member's name")->required()->type_name("");
  CLI::Option* wait =
      drain->add_flag("--wait", options->wait, "Wait until the host leads no partition");
  add_duration(drain, "--wait-timeout", options->wait_timeout,
               "Stop waiting after this, with exit code 1")
      ->needs(wait);

  const auto [undrain, undrained] = to.add<cli::UndrainOptions>(
      "undrain", "Let a host take partitions again",
      R"(HOST is a member's name, or one that left while it was draining. The others give it its share, one
partition at a time.

Examples:
  lictor undrain host-a
  lictor undrain host-a --json | jq .changed
)");
  undrain->add_option("HOST", undrained->host, "The member's name")->required()->type_name("");
}

}  // namespace

void add_parameters(CLI::App* app, cli::TaskText& task) {
  app->add_option("--para", task.paras, "A parameter: NAME=TEXT, or NAME:=JSON")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_text(app, "--para-json", task.para_json,
           "The parameters as JSON, from a file, or from standard input", "JSON|@FILE|-");
}
void add_limits(CLI::App* app, cli::TaskText& task) {
  add_text(app, "--serial-key", task.serial_key, "Tasks of one key run one after the other", "KEY");
  add_count(app, "--max-attempts", task.max_attempts,
            "A dead letter after N failed attempts (default: the executor's setting)", 1);
  add_text(app, "--timeout", task.timeout,
           "End an attempt after this (default: the executor's setting)", "DURATION");
  add_text(app, "--backoff", task.backoff,
           "Wait after the first failure (default: the executor's setting)", "DURATION");
}

void read_parameters(cli::TaskText& task) {
  if (!task.para_json) return;
  auto text = cli::read_argument("--para-json", *task.para_json);
  if (!text) throw CLI::ParseError(text.error().message, CLI::ExitCodes::RequiredError);
  task.para_json = std::move(*text);
}

CommandMakers add_commands(CLI::App& app, Invocation& invocation) {
  Adder to{app, invocation};
  for (const auto add :
       {add_globals, add_run, add_submit, add_lookups, add_cancel_and_retry, add_dead, add_schedule,
        add_pause, add_logs, add_leader, add_drain, add_tools}) {
    add(to);
  }
  return std::move(to.makers);
}

}  // namespace lictor::app
