// Schedules as flags describe them: schedule add and schedule next.
//
//   flags --> JSON record --Schedules::add()--> checked as a leader reads it --> Consul
//             |
//             +-- next: the same record, never written --> its ticks
//
// Flags are only put into the record, and checked there. So a mistake reads the same whether it
// came from a flag, a file or the configuration, and add prints the ticks that the leader will
// make.

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/try.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/new_task.h"
#include "cli/schedule.h"

namespace lictor::cli {
namespace {

using client::ObjectText;
using client::Schedules;
using client::StoredSchedule;
using schedule::Tick;

constexpr std::size_t kShownAfterAdd = 3;

// The flags that say when a schedule has its ticks, as text.
struct RuleText {
  std::optional<std::string> cron, every, timezone, start, end;
  std::vector<std::string> at;
};

struct ScheduleAddOptions {
  std::string name;
  std::optional<std::string> file;  // with the whole record; "-": standard input
  RuleText rule;
  std::optional<std::string> missed, missed_max_age, overlap, jitter;
  std::optional<std::uint32_t> missed_limit;
  TaskText task;  // the template
  bool replace = false;
};

struct ScheduleNextOptions {
  std::string name;  // empty: `rule`
  RuleText rule;
  std::size_t count = 10;
  std::optional<std::string> from;  // std::nullopt: now
};

// Prints the ticks in UTC and, if the schedule has a zone, on its clock.
void print_ticks(const Client& client, const StoredSchedule& stored,
                 const std::vector<Tick>& ticks) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const WallTime now = wall_now();
  const std::string name = stored.timezone.empty() ? "UTC" : stored.timezone;
  static const schedule::Zone kUtc;
  const auto& own = stored.definition->schedule.plan().zone;
  const schedule::Zone& zone = own ? *own : kUtc;
  const bool is_utc = name == "UTC";
  Table table{{is_utc ? "TICK" : "TICK (" + name + ')', is_utc ? "" : "UTC", "DUE"}};
  for (const Tick tick : ticks) {
    const auto day = std::chrono::floor<std::chrono::days>(tick + zone.period_at(tick).offset);
    table.add_row(
        {{kDays.at(std::chrono::weekday{day}.c_encoding()) + (' ' + local_text(tick, zone))},
         {is_utc ? "" : schedule::tick_text(tick)},
         {relative_time(tick, now)}});
  }
  client.console.print(table.render(client.console.width()));
}

// Adds members from flags; their values are checked with the record.
void add_text(const char* name, const std::optional<std::string>& text, ObjectText& record) {
  if (text) record.add(name, json_quoted(*text));
}
void add_rule(const RuleText& rule, ObjectText& record) {
  add_text("cron", rule.cron, record);
  add_text("every", rule.every, record);
  std::string times;
  for (const std::string& time : rule.at) times += (times.empty() ? "" : ",") + json_quoted(time);
  if (!times.empty()) record.add("at", '[' + times + ']');
  add_text("timezone", rule.timezone, record);
  add_text("start", rule.start, record);
  add_text("end", rule.end, record);
}

// Takes the whole record from --file, to the byte; else builds one from the flags.
Result<std::string> record_of(const ScheduleAddOptions& options) {
  if (options.file) {
    return read_argument("--file", *options.file == "-" ? "-" : '@' + *options.file);
  }
  LICTOR_TRY(const auto task, task_template(options.task));
  ObjectText record;
  add_rule(options.rule, record);
  add_text("missed", options.missed, record);
  if (options.missed_limit) record.add("missedLimit", std::to_string(*options.missed_limit));
  add_text("missedMaxAge", options.missed_max_age, record);
  add_text("overlap", options.overlap, record);
  add_text("jitter", options.jitter, record);
  record.add("task", task);
  return record.take();
}

// Errors of Consul stay as they are; an error in the record gets the schedule's name.
tl::unexpected<Error> refused(const std::string& name, Error error) {
  const bool is_record = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kTooLarge;
  if (is_record) error.message = named_schedule(name) + ": " + error.message;
  return tl::unexpected(std::move(error));
}

// The first daemon may come later; the note about a queue that nobody leads catches a mistyped
// name.
Result<int> schedule_add(const Client& client, const ScheduleAddOptions& options) {
  Schedules schedules{client.store, client.layout};
  LICTOR_TRY(const auto record, record_of(options));
  auto added = options.replace ? schedules.replace(options.name, record)
                               : schedules.add(options.name, record);
  if (!added) return refused(options.name, std::move(added.error()));
  const auto ticks = client::ticks_after(*added->definition, wall_now(), kShownAfterAdd);
  if (client.json) {
    print_json(client, {{"name", added->name},
                        {"key", added->key},
                        {"ticks", client::ticks_json(ticks, *added->definition)}});
    return kDone;
  }
  client.console.print_line(named_schedule(added->name) + " is written; its next ticks:");
  print_ticks(client, *added, ticks);
  if (!added->no_effect.empty()) client.console.note(added->no_effect);
  if (const std::string note = client::name_note(added->name); !note.empty()) {
    client.console.note(note + R"(; use letters, digits and ",_./-")");
  }
  if (ticks.empty()) client.console.note("all its ticks have passed, so it makes no tasks");
  if (added->definition->paused) client.console.note("it is paused, so it makes no tasks");
  note_if_not_led(client);
  return kDone;
}

Result<int> schedule_next(const Client& client, const ScheduleNextOptions& options) {
  Schedules schedules{client.store, client.layout};
  WallTime from = wall_now();
  if (options.from) {
    const auto time = time_argument(*options.from);
    if (!time) return fail(ErrorCode::kInvalid, "--from: " + time.error().message);
    from = *time;
  }
  const auto unnamed = [&] {
    ObjectText record;
    add_rule(options.rule, record);
    record.add("task", R"({"taskType":"any"})");
    return schedules.view({client.layout.schedule_key("next"), record.take(), {}});
  };
  LICTOR_TRY(auto asked, options.name.empty() ? Result<StoredSchedule>{unnamed()}
                                              : get_schedule(client, schedules, options.name));
  if (!asked.definition && options.name.empty()) return tl::unexpected(asked.definition.error());
  if (!asked.definition) return refused(options.name, asked.definition.error());
  schedule::Definition& read = *asked.definition;
  if (options.from) read.last_tick.reset();  // shows ticks that were made already, too
  const auto ticks = client::ticks_after(read, from, options.count);
  if (client.json) {
    print_json(client, {{"name", text_or_null(options.name)},
                        {"rule", asked.rule},
                        {"timezone", text_or_null(asked.timezone)},
                        {"paused", read.paused},
                        {"ticks", client::ticks_json(ticks, read)}});
    return kDone;
  }
  print_ticks(client, asked, ticks);
  if (ticks.empty()) {
    client.console.note(options.from ? "it has no ticks after " + *options.from
                                     : "it has no more ticks");
  }
  if (read.paused) {
    client.console.note(named_schedule(options.name) +
                        " is paused: these ticks make no tasks until "
                        "\"lictor schedule resume " +
                        shell_argument(options.name) + '"');
  }
  return kDone;
}

void add_rule_flags(Arguments& to, RuleText& rule) {
  to.text("--cron", rule.cron,
          "Minute, hour, day of month, month, day of week; \"lictor help schedules\"", "EXPR");
  to.text("--every", rule.every, "At each multiple of this since --start or the epoch", "DURATION");
  to.texts("--at", rule.at, "At this time; may be repeated", "TIME");
  to.text("--timezone", rule.timezone, "Of --cron, such as Europe/Rome (default: UTC)", "ZONE");
  to.text("--start", rule.start, "No tick before this", "TIME");
  to.text("--end", rule.end, "No tick after this", "TIME");
}

}  // namespace

void add_schedule_add(Commands& to) {
  auto [command, options] = to.add(
      "add", "Write a schedule",
      R"(Prints the next ticks. A schedule that exists already is left as it is (exit code 1), unless
--replace says otherwise. The record is checked first, as a leader reads it.

Examples:
  lictor schedule add nightly --cron '30 2 * * *' --timezone Europe/Rome --type Backup --para host=db7
  lictor schedule add sync --every 10m --overlap allow --type Sync --para 'since={tick}'
  lictor schedule add once --at 2026-12-24T18:00:00+01:00 --type Notify
  lictor schedule add nightly --replace --file nightly.json
)",
      schedule_add, {.queue = Command::Queue::kMayBeNew});
  command.argument("NAME", options.name, "The schedule's name").required();
  Option file = command.text("-f,--file", options.file,
                             "The whole record, from a file or from standard input", "FILE|-");
  const std::size_t first_of_flags = command.size();
  add_rule_flags(command, options.rule);
  command.text("--missed", options.missed, "What to do about ticks that nobody made in time",
               "skip|once|all");
  command.count("--missed-limit", options.missed_limit, "Of --missed all: at most N", 0);
  command.text("--missed-max-age", options.missed_max_age, "Of --missed all: none older than this",
               "DURATION");
  command.text("--overlap", options.overlap, "What a tick does while the task before waits or runs",
               "skip|queue|allow");
  command.text("--jitter", options.jitter, "Start up to this later, each schedule by its name",
               "DURATION");
  command.text("--type", options.task.type, "The kind of its tasks; picks the executor", "TYPE");
  add_parameters(command, options.task);
  add_limits(command, options.task);
  file.excludes(command.from(first_of_flags));
  command.flag("--replace", options.replace, "Write it in the place of one that exists");
  command.then([&task = options.task] { return read_parameters(task); });
}

void add_schedule_next(Commands& to) {
  auto [command, options] = to.add(
      "next", "Show the next ticks of a schedule, or of a rule",
      R"(Shows each tick on the clock of the schedule's zone and in UTC. A rule needs no schedule. With --from
also ticks of the past are shown, whether or not they made tasks.

Examples:
  lictor schedule next nightly -n 3
  lictor schedule next --cron '0 9 * * mon-fri' --timezone America/New_York
  lictor schedule next --cron '30 2 * * *' --timezone Europe/Rome --from 2026-03-28T00:00:00+01:00
  lictor schedule next --cron '0 0 L * *' --json | jq -r .ticks[].tick
)",
      schedule_next);
  Option name = command.argument("NAME", options.name, "The schedule's name");
  const std::size_t first_of_rule = command.size();
  add_rule_flags(command, options.rule);
  name.excludes(command.from(first_of_rule));
  command.count("-n,--count", options.count, "Show N (default: 10)", 1);
  command.text("--from", options.from,
               "The ticks after this time: RFC 3339, or seconds since the epoch (default: now)",
               "TIME");
  command.then([&read = options]() -> Result<void> {
    const RuleText& rule = read.rule;
    if (!read.name.empty() || rule.cron || rule.every || !rule.at.empty()) return {};
    return fail(ErrorCode::kInvalid, "NAME or --cron is required");
  });
}

}  // namespace lictor::cli
