#include <optional>

#include "app/command_options.h"

namespace lictor::app {
namespace {

void add_schedule_name(CLI::App* app, std::string& target) {
  app->add_option("NAME", target, "The schedule's name")->required()->type_name("");
}

void add_rule(CLI::App* app, cli::RuleText& rule) {
  add_text(app, "--cron", rule.cron,
           "Minute, hour, day of month, month, day of week; \"lictor help schedules\"", "EXPR");
  add_text(app, "--every", rule.every, "At each multiple of this since --start or the epoch",
           "DURATION");
  app->add_option("--at", rule.at, "At this time; may be repeated")
      ->type_name("TIME")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  add_text(app, "--timezone", rule.timezone, "Of --cron, such as Europe/Rome (default: UTC)",
           "ZONE");
  add_text(app, "--start", rule.start, "No tick before this", "TIME");
  add_text(app, "--end", rule.end, "No tick after this", "TIME");
}

struct ScheduleAddArguments {
  cli::ScheduleAddOptions options;

  [[nodiscard]] Command command() const {
    cli::ScheduleAddOptions read = options;
    read_parameters(read.task);
    return read;
  }
};

void add_schedule_changes(Adder& to, CLI::App* schedule) {
  const auto [add, added] = to.add<ScheduleAddArguments>(
      "add", "Write a schedule",
      R"(Prints the next ticks. A schedule that exists already is left as it is (exit code 1), unless
--replace says otherwise. The record is checked first, as a leader reads it.

Examples:
  lictor schedule add nightly --cron '30 2 * * *' --timezone Europe/Rome --type Backup --para host=db7
  lictor schedule add sync --every 10m --overlap allow --type Sync --para 'since={tick}'
  lictor schedule add once --at 2026-12-24T18:00:00+01:00 --type Notify
  lictor schedule add nightly --replace --file nightly.json
)",
      schedule);
  cli::ScheduleAddOptions& options = added->options;
  add_schedule_name(add, options.name);
  CLI::Option* file = add_text(add, "-f,--file", options.file,
                               "The whole record, from a file or from standard input", "FILE|-");
  const std::size_t first_of_flags = add->get_options({}).size();
  add_rule(add, options.rule);
  add_text(add, "--missed", options.missed, "What to do about ticks that nobody made in time",
           "skip|once|all");
  add_count(add, "--missed-limit", options.missed_limit, "Of --missed all: at most N", 0);
  add_text(add, "--missed-max-age", options.missed_max_age, "Of --missed all: none older than this",
           "DURATION");
  add_text(add, "--overlap", options.overlap,
           "What a tick does while the task before waits or runs", "skip|queue|allow");
  add_text(add, "--jitter", options.jitter, "Start up to this later, each schedule by its name",
           "DURATION");
  add_text(add, "--type", options.task.type, "The kind of its tasks; picks the executor", "TYPE");
  add_parameters(add, options.task);
  add_limits(add, options.task);
  const std::vector<CLI::Option*> all = add->get_options({});
  for (std::size_t i = first_of_flags; i < all.size(); ++i) file->excludes(all[i]);
  add->add_flag("--replace", options.replace, "Write it in the place of one that exists");

  const auto [remove, removed] = to.add<cli::ScheduleRemoveOptions>(
      "remove", "Delete a schedule",
      R"(Tasks that it made stay. The leader writes a schedule of the configuration again: remove
it there.

Examples:
  lictor schedule remove nightly
  lictor schedule remove nightly --json
)",
      schedule);
  add_schedule_name(remove, removed->name);

  const auto [pause, paused] = to.add<cli::SchedulePauseOptions>(
      "pause", "Make no tasks until resumed",
      R"(Tasks that it made go on. Refused (exit code 1) where the configuration file sets "paused" to
false.

Examples:
  lictor schedule pause nightly
  lictor schedule pause nightly --json | jq .changed
)",
      schedule);
  add_schedule_name(pause, paused->name);

  const auto [resume, resumed] = to.add<cli::ScheduleResumeOptions>(
      "resume", "Make tasks again",
      R"("missed" of the schedule decides about the ticks that came while it was paused. Refused (exit
code 1) where the configuration file sets "paused" to true.

Examples:
  lictor schedule resume nightly
  lictor schedule resume nightly --json | jq .changed
)",
      schedule);
  add_schedule_name(resume, resumed->name);
}

}  // namespace

void add_schedule(Adder& to) {
  CLI::App* schedule = Adder::group(to.app, "schedule", "Recurring tasks", R"(Examples:
  lictor schedule list
  lictor schedule add nightly --cron '30 2 * * *' --timezone Europe/Rome --type Backup
  lictor schedule next nightly
)");
  schedule->require_subcommand(1);
  to.add<cli::ScheduleListOptions>(
      "list", "List the schedules",
      R"(STATE is active, paused, ended (no tick is left) or bad, with the reason.

Examples:
  lictor schedule list
  lictor schedule list --json | jq -r '.schedules[] | select(.state == "bad") | .name'
)",
      schedule);
  const auto [show, shown] =
      to.add<cli::ScheduleShowOptions>("show", "Show everything about a schedule", R"(Examples:
  lictor schedule show nightly
  lictor schedule show nightly --json | jq .schedule.value.task
)",
                                       schedule);
  add_schedule_name(show, shown->name);
  const auto [next, asked] = to.add<cli::ScheduleNextOptions>(
      "next", "Show the next ticks of a schedule, or of a rule",
      R"(Shows each tick on the clock of the schedule's zone and in UTC. A rule needs no schedule. With --from
also ticks of the past are shown, whether or not they made tasks.

Examples:
  lictor schedule next nightly -n 3
  lictor schedule next --cron '0 9 * * mon-fri' --timezone America/New_York
  lictor schedule next --cron '30 2 * * *' --timezone Europe/Rome --from 2026-03-28T00:00:00+01:00
  lictor schedule next --cron '0 0 L * *' --json | jq -r .ticks[].tick
)",
      schedule);
  CLI::Option* name = next->add_option("NAME", asked->name, "The schedule's name")->type_name("");
  const std::size_t first_of_rule = next->get_options({}).size();
  add_rule(next, asked->rule);
  const std::vector<CLI::Option*> all = next->get_options({});
  for (std::size_t i = first_of_rule; i < all.size(); ++i) name->excludes(all[i]);
  next->final_callback([asked = asked] {
    const cli::RuleText& rule = asked->rule;
    if (asked->name.empty() && !rule.cron && !rule.every && rule.at.empty()) {
      throw CLI::RequiredError("NAME or --cron");
    }
  });
  add_count(next, "-n,--count", asked->count, "Show N (default: 10)", 1);
  add_text(next, "--from", asked->from,
           "The ticks after this time: RFC 3339, or seconds since the epoch (default: now)",
           "TIME");

  const auto [run, ran] = to.add<cli::ScheduleRunOptions>(
      "run", "Make a task of a schedule now",
      R"(Writes one task as if a tick were now, also while the schedule is paused or its last task runs,
and prints the task's id, which has the next second that no other task of the schedule has. The ticks
stay as they are, but "overlap" counts the task. A schedule that ticks each second is refused (exit
code 1): write a task with "lictor submit".

Examples:
  lictor schedule run nightly
  lictor schedule run nightly --json | jq -r .id
)",
      schedule);
  add_schedule_name(run, ran->name);
  add_schedule_changes(to, schedule);
}

}  // namespace lictor::app
