// Recurring tasks: the commands that take only the name of a schedule.

#include "cli/schedule.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cluster/succession.h"

namespace lictor::cli {

using client::Schedules;
using client::ScheduleState;
using client::StoredSchedule;
using nlohmann::ordered_json;
using schedule::Tick;

std::string named_schedule(const std::string& name) { return "schedule \"" + name + '"'; }

std::string tick_line(const std::optional<Tick>& tick, WallTime now) {
  return tick ? schedule::tick_text(*tick) + " (" + relative_time(*tick, now) + ')' : std::string{};
}

std::string rule_line(const StoredSchedule& stored) {
  return stored.rule + (stored.timezone.empty() ? "" : ", " + stored.timezone);
}

Result<StoredSchedule> get_schedule(const Client& client, Schedules& schedules,
                                    const std::string& name) {
  auto stored = schedules.get(name);
  if (!stored && client.json && stored.error().code == ErrorCode::kNotFound) {
    print_json(client, {{"name", name}, {"schedule", nullptr}});
  }
  return stored;
}

namespace {

// A schedule that is paused, has ended or cannot be read has no next tick.
std::optional<Tick> next_of(const StoredSchedule& stored, WallTime now) {
  if (state_of(stored, now) != ScheduleState::kActive) return std::nullopt;
  return client::ticks_after(*stored.definition, now, 1).front();
}

// The due time of its last task; "never" if it has made none.
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

// `local` is this host's configuration. If it sets "paused" otherwise, the change is refused: the
// leader would undo it. If no file here has the schedule, the leader's may, so a note says so.
Result<int> set_paused(const Client& client, const std::string& name, bool paused) {
  const auto known = client.schedules.find(name);
  const LocalSchedule local = known == client.schedules.end() ? LocalSchedule{} : known->second;
  Schedules schedules{client.store, client.layout};
  LICTOR_TRY(const auto stored, schedules.get(name));
  if (stored.from_config && local.paused == !paused) {
    return fail(
        ErrorCode::kConflict,
        fmt::format("{} is not {}: {} sets \"paused\": {} for it, and the leader would undo "
                    "the change; set \"paused\": {} there and run \"systemctl reload "
                    "lictor\" on each host",
                    named_schedule(name), paused ? "paused" : "resumed", local.file, !paused,
                    paused));
  }
  LICTOR_TRY(const bool changed, schedules.set_paused(name, paused));
  if (changed && stored.from_config && local.file.empty()) {
    client.console.note("the leader's configuration has " + named_schedule(name) +
                        ": if it sets \"paused\", the leader undoes this change within seconds; "
                        "then change the configuration instead");
  }
  if (client.json) {
    print_json(client, {{"name", name}, {"changed", changed}, {"paused", paused}});
    return kDone;
  }
  std::string text = named_schedule(name) + " is ";
  if (!changed) {
    text += paused ? "already paused" : "not paused";
  } else if (paused) {
    text +=
        "paused: it makes no tasks until \"lictor schedule resume " + shell_argument(name) + '"';
  } else {
    text += "resumed; its \"missed\" decides about the ticks since it was paused";
  }
  client.console.print_line(client.console.suggesting(text));
  return kDone;
}

// Without a leader no tick makes a task, which the list itself cannot show: a note says so.
Result<int> schedule_list(const Client& client) {
  LICTOR_TRY(const auto listed, Schedules(client.store, client.layout).list());
  const WallTime now = wall_now();
  if (client.json) {
    const auto to_json = [&](const StoredSchedule& stored) { return schedule_json(stored, now); };
    print_json(client,
               {{"hidden", listed.hidden}, {"schedules", json_list(listed.schedules, to_json)}});
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
    client.console.report_error("keys below " + client.layout.schedules_prefix +
                                " that the token may not read are not shown");
  }
  return kDone;
}

Result<int> schedule_show(const Client& client, const std::string& name) {
  Schedules schedules{client.store, client.layout};
  LICTOR_TRY(const auto stored, get_schedule(client, schedules, name));
  const WallTime now = wall_now();
  if (client.json) {
    ordered_json out = schedule_json(stored, now);
    client::add_value_json(stored.record, out);
    print_json(client, {{"name", stored.name}, {"schedule", std::move(out)}});
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

Result<int> schedule_remove(const Client& client, const std::string& name) {
  LICTOR_TRY(const auto removed, Schedules(client.store, client.layout).remove(name));
  if (client.json) {
    print_json(client, {{"name", name}, {"removed", true}});
  } else {
    client.console.print_line(named_schedule(name) + " is removed; tasks that it made stay");
  }
  if (removed.from_config) {
    client.console.note("the leader writes " + named_schedule(name) +
                        " again, as its configuration says; to end it, remove it there and run "
                        "\"systemctl reload lictor\" on each host");
  }
  return kDone;
}

Result<int> schedule_run(const Client& client, const std::string& name) {
  LICTOR_TRY(const auto id, Schedules(client.store, client.layout).run(name, wall_now()));
  if (client.json) {
    print_json(client, {{"name", name}, {"id", id}, {"key", client.layout.task_key(id)}});
  } else {
    client.console.print_line(id);
  }
  return kDone;
}

Result<int> schedule_pause(const Client& client, const std::string& name) {
  return set_paused(client, name, true);
}

Result<int> schedule_resume(const Client& client, const std::string& name) {
  return set_paused(client, name, false);
}

// A command that takes the name of a schedule.
void add_named(Commands& to, const char* name, const char* what, const char* about,
               Result<int> (*body)(const Client&, const std::string&)) {
  auto [command, target] = to.add(name, what, about, body);
  command.argument("NAME", target, "The schedule's name").required();
}

}  // namespace

// Serves "why" for an id that names a tick and no task: says how the tick ended.
std::vector<std::string> tick_reasons(const Client& client, const std::string& id) {
  const auto made = schedule::parse_tick_id(id);
  if (!made) return {};
  const std::string name{made->schedule_name};
  const schedule::Tick tick = made->tick;
  const auto stored = Schedules(client.store, client.layout).get(name);
  if (!stored) return {};
  if (!stored->definition) {
    return {fmt::format("{} makes no tasks: {}", named_schedule(name),
                        stored->definition.error().message)};
  }
  const schedule::Definition& read = *stored->definition;
  const bool made_last = read.last_task == id;  // perhaps by "schedule run", at no tick
  if (!made_last && read.schedule.next_after(tick - std::chrono::seconds{1}) != tick) {
    const auto next = read.schedule.next_after(tick);
    return {
        fmt::format("{} ({}) has no such tick{}; a task made by \"lictor schedule run\" that "
                    "is done is gone, too",
                    named_schedule(name), rule_line(*stored),
                    next ? ", its next one would be " + schedule::tick_text(*next) : "")};
  }
  if (made_last || (read.last_tick && tick <= *read.last_tick)) {
    return {
        "the leader has decided about this tick: its task was made and is gone, done or deleted (a "
        "queue with \"history\" keeps what is done), or the tick was skipped, by \"missed\" or by "
        "\"overlap\""};
  }
  std::vector<std::string> reasons;
  const WallTime now = wall_now();
  if (read.paused) {
    reasons.push_back(fmt::format("{0} is paused; \"lictor schedule resume {1}\" ends that",
                                  named_schedule(name), shell_argument(name)));
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

void add_schedule(Commands& to) {
  Commands schedule = to.group("schedule", "Recurring tasks", R"(Examples:
  lictor schedule list
  lictor schedule add nightly --cron '30 2 * * *' --timezone Europe/Rome --type Backup
  lictor schedule next nightly
)");
  schedule.add("list", "List the schedules",
               R"(STATE is active, paused, ended (no tick is left) or bad, with the reason.

Examples:
  lictor schedule list
  lictor schedule list --json | jq -r '.schedules[] | select(.state == "bad") | .name'
)",
               schedule_list);
  add_named(schedule, "show", "Show everything about a schedule", R"(Examples:
  lictor schedule show nightly
  lictor schedule show nightly --json | jq .schedule.value.task
)",
            schedule_show);
  add_schedule_next(schedule);
  add_named(
      schedule, "run", "Make a task of a schedule now",
      R"(Writes one task as if a tick were now, also while the schedule is paused or its last task runs,
and prints the task's id, which has the next second that no other task of the schedule has. The ticks
stay as they are, but "overlap" counts the task. A schedule that ticks each second is refused (exit
code 1): write a task with "lictor submit".

Examples:
  lictor schedule run nightly
  lictor schedule run nightly --json | jq -r .id
)",
      schedule_run);
  add_schedule_add(schedule);
  add_named(
      schedule, "remove", "Delete a schedule",
      R"(Tasks that it made stay. The leader writes a schedule of the configuration again: remove
it there.

Examples:
  lictor schedule remove nightly
  lictor schedule remove nightly --json
)",
      schedule_remove);
  add_named(
      schedule, "pause", "Make no tasks until resumed",
      R"(Tasks that it made go on. Refused (exit code 1) where the configuration file sets "paused" to
false.

Examples:
  lictor schedule pause nightly
  lictor schedule pause nightly --json | jq .changed
)",
      schedule_pause);
  add_named(
      schedule, "resume", "Make tasks again",
      R"("missed" of the schedule decides about the ticks that came while it was paused. Refused (exit
code 1) where the configuration file sets "paused" to true.

Examples:
  lictor schedule resume nightly
  lictor schedule resume nightly --json | jq .changed
)",
      schedule_resume);
}

}  // namespace lictor::cli
