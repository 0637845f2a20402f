#include "client/schedules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/limits.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/retry.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "schedule/ticks.h"
#include "wire/schedule_record.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

using nlohmann::json;
using schedule::Definition;
using schedule::Tick;
using std::chrono::floor;
using std::chrono::seconds;

// Refuses a name that no new schedule should have; read_schedule() refuses others.
Result<void> check_name(const std::string& name) {
  std::string fault = id_fault(name);
  if (!fault.empty()) return fail(ErrorCode::kInvalid, "its name " + fault);
  fault = id_fault(schedule::tick_id(name, Tick{}));
  if (!fault.empty()) return fail(ErrorCode::kInvalid, "its name with a tick after it " + fault);
  return {};
}

std::string in_quotes(const std::string& name) { return '"' + shown(name) + '"'; }

std::string rule_text(const json& record) {
  if (auto cron = text_member(record, "cron"); !cron.empty()) return cron;
  if (const auto every = text_member(record, "every"); !every.empty()) return "every " + every;
  const json& at = json_member(record, "at");
  if (!at.is_array()) return {};
  return "at " + (at.size() == 1 && at.front().is_string() ? at.front().get<std::string>()
                                                           : counted(at.size(), "time"));
}

// Fields of others may be there; one that is nearly a field of a schedule is a mistake.
std::string field_without_effect(const json& record) {
  static const std::vector<std::string_view> kFields{
      "cron",     "every",       "at",           "timezone",  "start",  "end",
      "missed",   "missedLimit", "missedMaxAge", "overlap",   "jitter", "paused",
      "lastTick", "lastTask",    "task",         "fromConfig"};
  for (const auto& [name, value] : record.items()) {
    if (std::find(kFields.begin(), kFields.end(), name) != kFields.end()) continue;
    if (const std::string near = nearest(lowered(name), kFields); !near.empty()) {
      return fmt::format("\"{}\" is no field of a schedule and has no effect; did you mean \"{}\"?",
                         excerpt(name), near);
    }
  }
  return {};
}

// Adds to `record` what a leader and an operator have done under the same rule.
std::string with_past(std::string_view record, const Definition& now, const Definition& past) {
  std::string text{record};
  if (now.rule != past.rule) return text;
  if (past.last_tick) text = wire::with_last_tick(text, *past.last_tick, {});
  if (!past.last_task.empty()) text = wire::with_last_task(text, past.last_task);
  if (past.paused && !wire::has_member(text, "paused")) text = wire::with_paused(text, true);
  return text;
}

// Upper bound of the bytes of the transaction that writes one tick.
std::size_t tick_bytes(const wire::Layout& layout, const std::string& name, std::string_view record,
                       const Definition& definition) {
  core::ScheduleOp op;
  op.key = layout.schedule_key(name);
  op.index = std::numeric_limits<std::uint64_t>::max();
  op.name = name;
  op.record = std::make_shared<const std::string>(record);
  op.definition = std::make_shared<const Definition>(definition);
  op.last_task = schedule::tick_id(name, Tick{});
  op.makes_task = true;
  const wire::TransactionPlan plan{layout, {}};
  core::Cost cost = plan.fence(core::kMostPartitions, 1);
  cost += plan.cost(op);
  return cost.bytes;
}

// Reads a record as a leader does.
Result<Definition> checked(const wire::Layout& layout, schedule::Zones& zones,
                           const std::string& name, std::string_view record) {
  LICTOR_TRY(auto read, wire::read_schedule(name, record, zones));
  const std::size_t whole = tick_bytes(layout, name, record, read);
  if (whole > limits::kTransactionBytes) {
    return fail(ErrorCode::kTooLarge,
                fmt::format("a tick writes the schedule and its task in one transaction, which "
                            "holds {} bytes, and these need {}; store large data elsewhere and "
                            "refer to it",
                            limits::kTransactionBytes, whole));
  }
  return read;
}

// Leaders take such a record all the same, and it makes some of its ticks: how many follows from
// its name.
std::string jitter_fault(const Definition& schedule) {
  const auto gap = schedule.schedule.shortest_gap();
  if (!gap || schedule.jitter < *gap || schedule.overlap != schedule::Overlap::kSkip) return {};
  return fmt::format(
      "jitter: expected less than the shortest time between two ticks ({}), got \"{}\"; a tick "
      "makes no task while the last one waits, unless \"overlap\" is \"queue\" or \"allow\"",
      format_duration(*gap), format_duration(schedule.jitter));
}

// Errors: a leader could not use the record, or it has a fault that a new record should not have.
Result<Definition> checked_to_write(const wire::Layout& layout, schedule::Zones& zones,
                                    const std::string& name, std::string_view record) {
  LICTOR_TRY(auto read,
             check_name(name).and_then([&] { return checked(layout, zones, name, record); }));
  if (std::string fault = jitter_fault(read); !fault.empty()) {
    return fail(ErrorCode::kInvalid, std::move(fault));
  }
  return read;
}

// The seconds to try for one without a tick. Seconds of a minute are what a rule can list.
constexpr int kSecondsTried = 60;

// The first second from `from` on that can name a task of the schedule. Finished tasks are gone, so
// only the record shows which seconds are free: those up to lastTick and lastTask may have had
// tasks, and each tick will have one. std::nullopt if each second is a tick.
std::optional<Tick> free_second(const Definition& schedule, Tick from) {
  const auto last = schedule::parse_tick_id(schedule.last_task);
  if (schedule.last_tick) from = std::max(from, *schedule.last_tick + seconds{1});
  if (last) from = std::max(from, last->tick + seconds{1});
  for (int i = 0; i < kSecondsTried; ++i, from += seconds{1}) {
    if (schedule.schedule.next_after(from - seconds{1}) != from) return from;
  }
  return std::nullopt;
}

}  // namespace

Result<core::ConfiguredSchedule> configured_schedule(const wire::Layout& layout,
                                                     const std::string& name,
                                                     const std::string& record) {
  for (const char* field : {"lastTick", "lastTask", "fromConfig"}) {
    if (!wire::has_member(record, field)) continue;
    return fail(ErrorCode::kInvalid, fmt::format("{}: the leader writes it; remove it", field));
  }
  const std::string text = wire::as_configured(record);
  schedule::Zones zones;
  LICTOR_TRY(auto read, checked_to_write(layout, zones, name, text));
  if (std::string no_effect = field_without_effect(json::parse(text)); !no_effect.empty()) {
    return fail(ErrorCode::kInvalid, std::move(no_effect));
  }
  return core::ConfiguredSchedule{
      layout.schedule_key(name), std::make_shared<const std::string>(text),
      std::make_shared<const Definition>(std::move(read)), wire::has_member(text, "paused")};
}

std::string_view state_name(ScheduleState state) {
  static constexpr std::array<std::string_view, 4> kNames{"active", "paused", "ended", "bad"};
  return kNames.at(static_cast<std::size_t>(state));
}

ScheduleState state_of(const StoredSchedule& schedule, WallTime now) {
  if (!schedule.definition) return ScheduleState::kBad;
  if (ticks_after(*schedule.definition, now, 1).empty()) return ScheduleState::kEnded;
  return schedule.definition->paused ? ScheduleState::kPaused : ScheduleState::kActive;
}

std::vector<Tick> ticks_after(const Definition& schedule, WallTime now, std::size_t most) {
  std::vector<Tick> ticks;
  Tick at = std::max(floor<seconds>(now), schedule.last_tick.value_or(Tick::min()));
  while (ticks.size() < most) {
    const auto next = schedule.schedule.next_after(at);
    if (!next) break;
    ticks.push_back(*next);
    at = *next;
  }
  return ticks;
}

std::optional<Tick> last_made(const StoredSchedule& schedule) {
  if (!schedule.definition) return std::nullopt;
  const auto last = schedule::parse_tick_id(schedule.definition->last_task);
  return last ? std::optional{last->tick} : std::nullopt;
}

std::string_view made_by(std::string_view task_id) {
  const auto tick = schedule::parse_tick_id(task_id);
  return tick ? tick->schedule_name : std::string_view{};
}

nlohmann::ordered_json schedule_json(const StoredSchedule& schedule, WallTime now) {
  const ScheduleState state = state_of(schedule, now);
  const auto& read = schedule.definition;
  const auto next =
      state == ScheduleState::kActive ? ticks_after(*read, now, 1) : std::vector<Tick>{};
  const auto tick_or_null = [](const std::optional<Tick>& tick) {
    return text_or_null(tick ? schedule::tick_text(*tick) : "");
  };
  return {{"name", schedule.name},
          {"key", schedule.key},
          {"state", state_name(state)},
          {"error", text_or_null(read ? "" : read.error().message)},
          {"rule", text_or_null(schedule.rule)},
          {"timezone", text_or_null(schedule.timezone)},
          {"type", text_or_null(schedule.type)},
          {"next", tick_or_null(next.empty() ? std::nullopt : std::optional{next.front()})},
          {"last", tick_or_null(last_made(schedule))},
          {"last_tick", tick_or_null(read ? read->last_tick : std::nullopt)},
          {"last_task", text_or_null(read ? read->last_task : "")},
          {"from_config", schedule.from_config},
          {"create_index", schedule.create_index},
          {"modify_index", schedule.modify_index}};
}

nlohmann::ordered_json ticks_json(const std::vector<Tick>& ticks, const Definition& schedule) {
  const auto& zone = schedule.schedule.plan().zone;
  auto list = nlohmann::ordered_json::array();
  for (const Tick tick : ticks) {
    list.push_back(
        {{"tick", schedule::tick_text(tick)},
         {"local", zone ? schedule::local_text(tick, *zone) : schedule::tick_text(tick)}});
  }
  return list;
}

std::string name_note(const std::string& schedule_name) {
  if (fits_path(schedule_name)) return {};
  return "Consul 1.21.5 and newer refuse its name, and so its tasks' ids, in the path of a "
         "request: "
         "its tasks run, but curl cannot read or delete them there";
}

// A record that cannot be read still gives the fields that are there, since a list must show it.
StoredSchedule Schedules::view(wire::KvEntry entry) {
  StoredSchedule stored;
  stored.name = entry.key.substr(layout_.schedules_prefix.size());
  stored.key = std::move(entry.key);
  stored.record = std::move(entry.value);
  stored.flags = entry.flags;
  stored.create_index = entry.create_index;
  stored.modify_index = entry.modify_index;
  stored.definition = checked(layout_, zones_, stored.name, stored.record);
  const json record = parse_json(stored.record).value_or(json{});
  if (!record.is_object()) return stored;
  stored.rule = rule_text(record);
  stored.timezone = text_member(record, "timezone");
  stored.no_effect = field_without_effect(record);
  if (stored.no_effect.empty() && stored.definition)
    stored.no_effect = jitter_fault(*stored.definition);
  stored.from_config = json_member(record, "fromConfig") == true;
  stored.type = text_member(json_member(record, "task"), "taskType");
  return stored;
}

Result<Schedules::Listed> Schedules::list() {
  LICTOR_TRY(auto found, store_.list(layout_.schedules_prefix));
  Listed listed{{}, found.hidden};
  for (wire::KvEntry& entry : found.entries) {
    if (!entry.key.ends_with('/')) listed.schedules.push_back(view(std::move(entry)));
  }
  return listed;
}

Error Schedules::not_found(const std::string& name) {
  Error error{ErrorCode::kNotFound, fmt::format("no schedule {} (looked at {})", in_quotes(name),
                                                shown(layout_.schedule_key(name)))};
  const auto listed = store_.list(layout_.schedules_prefix);
  if (!listed) return error;
  std::vector<std::string_view> names;
  for (const wire::KvEntry& entry : listed->entries) {
    names.push_back(std::string_view{entry.key}.substr(layout_.schedules_prefix.size()));
  }
  const std::string near = nearest(name, names);
  error.message += near.empty() ? "; \"lictor schedule list\" shows those that exist"
                                : "; did you mean " + in_quotes(near) + '?';
  return error;
}

Result<StoredSchedule> Schedules::get(const std::string& name) {
  if (name.empty() || name.ends_with('/')) {
    return fail(ErrorCode::kInvalid, "expected a schedule's name, got " + in_quotes(name));
  }
  LICTOR_TRY(auto entry, store_.get(layout_.schedule_key(name)));
  if (!entry) return tl::unexpected(not_found(name));
  return view(*std::move(entry));
}

Result<StoredSchedule> Schedules::readable(const std::string& name) {
  LICTOR_TRY(auto stored, get(name));
  if (stored.definition) return stored;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("schedule {} cannot be read: {}; write it again with \"lictor schedule "
                  "add --replace {}\" and its rule",
                  in_quotes(name), stored.definition.error().message, shell_argument(name)));
}

Result<StoredSchedule> Schedules::add(const std::string& name, const std::string& record) {
  LICTOR_TRY([[maybe_unused]] const auto read, checked_to_write(layout_, zones_, name, record));
  const std::string key = layout_.schedule_key(name);
  LICTOR_TRY(const bool added, store_.replace(key, 0, record));
  if (!added) {
    return fail(ErrorCode::kConflict,
                fmt::format("schedule {} exists already and was left as it is; \"--replace\" "
                            "writes it again",
                            in_quotes(name)));
  }
  return view({key, record, {}});
}

Result<StoredSchedule> Schedules::replace(const std::string& name, const std::string& record) {
  LICTOR_TRY(const Definition read, checked_to_write(layout_, zones_, name, record));
  const std::string key = layout_.schedule_key(name);
  return retry_conflicts(key, [&]() -> std::optional<Result<StoredSchedule>> {
    LICTOR_TRY(const auto old, store_.get(key));
    const wire::KvEntry past = old.value_or(wire::KvEntry{key, {}, {}});
    const StoredSchedule stored = view(past);
    const std::string text =
        stored.definition ? with_past(record, read, *stored.definition) : record;
    LICTOR_TRY(const bool written, store_.replace(key, past.modify_index, text, past.flags));
    if (!written) return std::nullopt;
    return view({key, text, {}});
  });
}

Result<StoredSchedule> Schedules::remove(const std::string& name) {
  return retry_conflicts(name, [&]() -> std::optional<Result<StoredSchedule>> {
    LICTOR_TRY(auto stored, get(name));
    LICTOR_TRY(const auto refused,
               store_.apply({{{Store::Op::Verb::kDeleteCas, stored.key, stored.modify_index}}}));
    if (refused.front()) return std::nullopt;
    return stored;
  });
}

Result<bool> Schedules::set_paused(const std::string& name, bool paused) {
  return retry_conflicts(name, [&]() -> std::optional<Result<bool>> {
    LICTOR_TRY(const auto stored, readable(name));
    if (stored.definition->paused == paused) return false;
    LICTOR_TRY(const bool written,
               store_.replace(stored.key, stored.modify_index,
                              wire::with_paused(stored.record, paused), stored.flags));
    if (!written) return std::nullopt;
    return true;
  });
}

Result<std::string> Schedules::run(const std::string& name, WallTime now) {
  const Tick due = floor<seconds>(now);
  Tick from = due;
  return retry_conflicts(name, [&]() -> std::optional<Result<std::string>> {
    LICTOR_TRY(auto stored, readable(name));
    Definition& read = *stored.definition;
    const auto tick = free_second(read, from);
    if (!tick) {
      return fail(ErrorCode::kConflict,
                  fmt::format("schedule {0} ticks each second, which leaves none for another task "
                              "of it: its tasks' ids, {1}, name their seconds; write a task of "
                              "your own with \"lictor submit\"",
                              in_quotes(name), printable(schedule::tick_id(name, from))));
    }
    const std::string id = schedule::tick_id(name, *tick);
    read.jitter = {};  // "now" is not to be spread
    // Due now, also if its id is of a later second. lastTick stays: this is no tick, and overlap
    // needs only the task.
    const std::string task = wire::with_member(wire::tick_task(name, read, *tick), "executeAt",
                                               json_quoted(schedule::tick_text(due)));
    const auto refused = store_.apply({{{Store::Op::Verb::kCas, layout_.task_key(id), 0, task},
                                        {Store::Op::Verb::kCas, stored.key, stored.modify_index,
                                         wire::with_last_task(stored.record, id), stored.flags}}});
    if (!refused) {
      Error error = refused.error();
      if (error.code == ErrorCode::kTimeout) {
        error.message += fmt::format("; look with \"lictor show {}\"", shell_argument(id));
      }
      return tl::unexpected(std::move(error));
    }
    if (!refused->front()) return id;
    // The schedule changed meanwhile, or its record does not mention this task.
    if (*refused->front() == 0) from = *tick + seconds{1};
    return std::nullopt;
  });
}

}  // namespace lictor::client
