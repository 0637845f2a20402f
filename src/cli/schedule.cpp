#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"
#include "client/schedules.h"
#include "cluster/takeover.h"
#include "schedule/ticks.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using client::ObjectText;
using client::Schedules;
using client::ScheduleState;
using client::StoredSchedule;
using nlohmann::ordered_json;
using schedule::Tick;
using wire::json_quoted;

constexpr std::size_t kShownAfterAdd = 3;

std::string named(const std::string& name) { return "schedule \"" + name + '"'; }

// "2026-11-24T09:30:00Z (in 3h)"
std::string tick_line(const std::optional<Tick>& tick, WallTime now) {
  return tick ? schedule::tick_text(*tick) + " (" + relative_time(*tick, now) + ')' : std::string{};
}

// "30 2 * * *, Europe/Rome"
std::string rule_line(const StoredSchedule& stored) {
  return stored.rule + (stored.timezone.empty() ? "" : ", " + stored.timezone);
}

std::optional<Tick> next_of(const StoredSchedule& stored, WallTime now) {
  if (state_of(stored, now) != ScheduleState::kActive) return std::nullopt;
  return client::ticks_after(*stored.definition, now, 1).front();
}

// When it made its last task; "never", which is not when a leader first saw the schedule.
std::string last_line(const StoredSchedule& stored, WallTime now) {
  if (!stored.definition) return {};
  if (stored.definition->last_task.empty()) return "never";
  return tick_line(client::last_made(stored), now);
}

Cell state_cell(const StoredSchedule& stored, WallTime now) {
  const ScheduleState state = state_of(stored, now);
  const std::string name{client::state_name(state)};
  if (state == ScheduleState::kBad) {
    return {name + ": " + stored.definition.error().message, Style::kRed};
  }
  return {name, state == ScheduleState::kPaused ? Style::kYellow : Style::kPlain};
}

// The ticks in UTC and, if the schedule has a zone, on its clock.
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

// Members from flags. What they say is checked with the record.
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

tl::unexpected<Error> refused(const std::string& name, Error error) {
  const bool is_record = error.code == ErrorCode::kInvalid || error.code == ErrorCode::kTooLarge;
  if (is_record) error.message = named(name) + ": " + error.message;
  return tl::unexpected(std::move(error));
}

// With --json what is not found is a document, too.
Result<StoredSchedule> get(const Client& client, Schedules& schedules, const std::string& name) {
  auto stored = schedules.get(name);
  if (!stored && client.json && stored.error().code == ErrorCode::kNotFound) {
    print_json(client, {{"name", name}, {"schedule", nullptr}});
  }
  return stored;
}

Result<int> set_paused(const Client& client, const std::string& name, const LocalSchedule& local,
                       bool paused) {
  Schedules schedules{client.store, client.layout};
  LICTOR_TRY(const auto stored, schedules.get(name));
  if (stored.from_config && local.paused == !paused) {
    return fail(
        ErrorCode::kConflict,
        fmt::format("{} is not {}: {} sets \"paused\": {} for it, and the leader would undo "
                    "the change; set \"paused\": {} there and run \"systemctl reload "
                    "lictor\" on each host",
                    named(name), paused ? "paused" : "resumed", local.file, !paused, paused));
  }
  LICTOR_TRY(const bool changed, schedules.set_paused(name, paused));
  if (changed && stored.from_config && local.file.empty()) {
    client.console.note("the leader's configuration has " + named(name) +
                        ": if it sets \"paused\", the leader undoes this change within seconds; "
                        "then change the configuration instead");
  }
  if (client.json) {
    print_json(client, {{"name", name}, {"changed", changed}, {"paused", paused}});
    return kDone;
  }
  std::string text = named(name) + " is ";
  if (!changed) {
    text += paused ? "already paused" : "not paused";
  } else if (paused) {
    text += "paused: it makes no tasks until \"lictor schedule resume " + name + '"';
  } else {
    text += "resumed; its \"missed\" decides about the ticks since it was paused";
  }
  client.console.print_line(client.console.suggesting(text));
  return kDone;
}

}  // namespace

Result<int> schedule_list(const Client& client, const ScheduleListOptions&) {
  LICTOR_TRY(const auto listed, Schedules(client.store, client.layout).list());
  const WallTime now = wall_now();
  if (client.json) {
    const auto told = [&](const StoredSchedule& stored) { return schedule_json(stored, now); };
    print_json(client,
               {{"hidden", listed.hidden}, {"schedules", json_list(listed.schedules, told)}});
  } else {
    Table table{{"NAME", "RULE", "NEXT", "LAST", "STATE"}};
    for (const StoredSchedule& stored : listed.schedules) {
      table.add_row({{stored.name},
                     {rule_line(stored)},
                     {tick_line(next_of(stored, now), now)},
                     {last_line(stored, now)},
                     state_cell(stored, now)});
    }
    client.console.print(table.render(client.console.width()));
    if (listed.schedules.empty()) {
      client.console.note(fmt::format("no schedules in queue \"{}\" ({})", client.queue,
                                      client.layout.schedules_prefix));
    } else if (const std::string trouble = cluster::lead_trouble(client.stored());
               !trouble.empty()) {
      client.console.note(trouble + "; without a leader no tick makes a task");
    }
  }
  if (listed.hidden) {
    client.console.complain("keys below " + client.layout.schedules_prefix +
                            " that the token may not read are not shown");
  }
  return kDone;
}

Result<int> schedule_show(const Client& client, const ScheduleShowOptions& options) {
  Schedules schedules{client.store, client.layout};
  LICTOR_TRY(const auto stored, get(client, schedules, options.name));
  const WallTime now = wall_now();
  if (client.json) {
    ordered_json told = schedule_json(stored, now);
    client::add_value_json(stored.record, told);
    print_json(client, {{"name", stored.name}, {"schedule", std::move(told)}});
    return kDone;
  }
  Sheet sheet;
  sheet.line("name", stored.name, Style::kBold);
  sheet.line("key", stored.key);
  const Cell state = state_cell(stored, now);
  sheet.line("state", state.text, state.style);
  sheet.line("rule", rule_line(stored));
  sheet.line("type", stored.type);
  sheet.line("next", tick_line(next_of(stored, now), now));
  if (stored.definition) {
    sheet.line("last", last_line(stored, now));
    sheet.line("last task", stored.definition->last_task);
    sheet.line("decided to", tick_line(stored.definition->last_tick, now));
  }
  if (stored.from_config) sheet.line("written by", "the leader, as its configuration says");
  sheet.line("index", "created " + std::to_string(stored.create_index) + ", modified " +
                          std::to_string(stored.modify_index));
  sheet.block("Record", record_text(stored.record));
  client.console.print(sheet.page);
  return kDone;
}

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
  client.console.print_line(named(added->name) + " is written; its next ticks:");
  print_ticks(client, *added, ticks);
  if (!added->odd.empty()) client.console.note(added->odd);
  if (const std::string note = client::name_note(added->name); !note.empty()) {
    client.console.note(note + R"(; use letters, digits and ",_./-")");
  }
  if (ticks.empty()) client.console.note("all its ticks have passed, so it makes no tasks");
  if (added->definition->paused) client.console.note("it is paused, so it makes no tasks");
  note_if_never_led(client);
  return kDone;
}

Result<int> schedule_remove(const Client& client, const ScheduleRemoveOptions& options) {
  LICTOR_TRY(const auto removed, Schedules(client.store, client.layout).remove(options.name));
  if (client.json) {
    print_json(client, {{"name", options.name}, {"removed", true}});
  } else {
    client.console.print_line(named(options.name) + " is removed; tasks that it made stay");
  }
  if (removed.from_config) {
    client.console.note("the leader writes " + named(options.name) +
                        " again, as its configuration says; to end it, remove it there and run "
                        "\"systemctl reload lictor\" on each host");
  }
  return kDone;
}

Result<int> schedule_run(const Client& client, const ScheduleRunOptions& options) {
  LICTOR_TRY(const auto id, Schedules(client.store, client.layout).run(options.name, wall_now()));
  if (client.json) {
    print_json(client, {{"name", options.name}, {"id", id}, {"key", client.layout.task_key(id)}});
  } else {
    client.console.print_line(id);
  }
  return kDone;
}

Result<int> schedule_pause(const Client& client, const SchedulePauseOptions& options) {
  return set_paused(client, options.name, options.local, true);
}

Result<int> schedule_resume(const Client& client, const ScheduleResumeOptions& options) {
  return set_paused(client, options.name, options.local, false);
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
                                              : get(client, schedules, options.name));
  if (!asked.definition && options.name.empty()) return tl::unexpected(asked.definition.error());
  if (!asked.definition) return refused(options.name, asked.definition.error());
  schedule::Definition& read = *asked.definition;
  if (options.from) read.last_tick.reset();  // what was made already is asked for, too
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
    client.console.note(named(options.name) +
                        " is paused: these ticks make no tasks until "
                        "\"lictor schedule resume " +
                        options.name + '"');
  }
  return kDone;
}

std::vector<std::string> tick_reasons(const Client& client, const std::string& id) {
  const auto made = schedule::parse_tick_id(id);
  if (!made) return {};
  const std::string name{made->schedule_name};
  const schedule::Tick tick = made->tick;
  const auto stored = Schedules(client.store, client.layout).get(name);
  if (!stored) return {};
  if (!stored->definition) {
    return {fmt::format("{} makes no tasks: {}", named(name), stored->definition.error().message)};
  }
  const schedule::Definition& read = *stored->definition;
  if (read.last_task == id) {
    return {named(name) +
            " made it last, and it is gone: it is done, or somebody deleted it; a queue with "
            "\"history\" keeps what is done"};
  }
  if (read.schedule.next_after(tick - std::chrono::seconds{1}) != tick) {
    const auto next = read.schedule.next_after(tick);
    return {
        fmt::format("{} ({}) has no such tick{}; a task made by \"lictor schedule run\" that "
                    "is done is gone, too",
                    named(name), rule_line(*stored),
                    next ? ", its next one would be " + schedule::tick_text(*next) : "")};
  }
  if (read.last_tick && tick <= *read.last_tick) {
    return {
        fmt::format("the leader has decided about this tick (lastTick is {}): the task was made "
                    "and is gone, or the tick was skipped, by \"missed\" or by \"overlap\"",
                    schedule::tick_text(*read.last_tick))};
  }
  std::vector<std::string> reasons;
  const WallTime now = wall_now();
  if (read.paused) {
    reasons.push_back(
        fmt::format("{0} is paused; \"lictor schedule resume {1}\" ends that", named(name), name));
  }
  if (tick > now) {
    reasons.push_back("its tick comes at " + tick_line(tick, now));
  } else if (!read.paused) {
    reasons.push_back("its tick was at " + tick_line(tick, now) +
                      ", and no leader has decided about it");
  }
  if (const std::string trouble = cluster::lead_trouble(client.stored()); !trouble.empty())
    reasons.push_back(trouble);
  return reasons;
}

}  // namespace lictor::cli
