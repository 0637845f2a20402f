#include "wire/schedule_record.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"

namespace lictor::wire {
namespace {

using nlohmann::json;
using schedule::Definition;
using schedule::Overlap;
using schedule::Tick;
using std::chrono::floor;
using std::chrono::seconds;

constexpr std::string_view kTick = "{tick}";

// The values of the members, before they become a schedule.
struct Fields {
  std::optional<schedule::Cron> cron;
  std::optional<seconds> cron_every;  // "@every 5m"
  std::string cron_zone;              // "CRON_TZ=Europe/Rome 30 2 * * *"
  std::optional<seconds> every;
  std::optional<std::vector<Tick>> at;
  std::string zone_name;
  std::optional<Tick> start, end, last_tick;
  std::string last_task;
  schedule::Missed missed;
  Overlap overlap = Overlap::kSkip;
  std::chrono::milliseconds jitter{};
  bool paused = false;
  bool from_config = false;
  std::string_view task;
  std::string rule;
};

Result<Tick> read_tick(std::string_view text) {
  LICTOR_TRY(const WallTime time, read_time(text));
  const Tick tick = floor<seconds>(time);
  if (tick != time) return unexpected_value("a time in whole seconds", text);
  return tick;
}

Result<std::vector<Tick>> read_ticks(std::string_view text) {
  const auto list = parse_json(text);
  if (!list || !list->is_array()) {
    return unexpected_value(R"(a list of times such as ["2026-11-24T09:30:00Z"])", text);
  }
  std::vector<Tick> ticks;
  for (const json& time : *list) {
    LICTOR_TRY(const Tick tick, read_tick(time.dump()));
    ticks.push_back(tick);
  }
  return ticks;
}

Result<seconds> read_seconds(std::string_view text) {
  LICTOR_TRY(const Duration duration, read_duration(text));
  const seconds whole = floor<seconds>(duration);
  if (whole != duration)
    return unexpected_value(R"(a duration in whole seconds such as "90s")", text);
  return whole;
}

Result<bool> read_bool(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  return unexpected_value("true or false", text);
}

// The value with this name.
template <class Value, std::size_t count>
Result<Value> read_name(std::string_view text,
                        const std::array<std::pair<std::string_view, Value>, count>& names) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (text == '"' + std::string{names[i].first} + '"') return names[i].second;
    all += (i == 0 ? "\"" : i + 1 == count ? " or \"" : ", \"") + std::string{names[i].first} + '"';
  }
  return unexpected_value(all, text);
}

constexpr std::array<std::pair<std::string_view, schedule::Missed::Policy>, 3> kPolicies{
    {{"skip", schedule::Missed::Policy::kSkip},
     {"once", schedule::Missed::Policy::kOnce},
     {"all", schedule::Missed::Policy::kAll}}};
constexpr std::array<std::pair<std::string_view, Overlap>, 3> kOverlaps{
    {{"skip", Overlap::kSkip}, {"queue", Overlap::kQueue}, {"allow", Overlap::kAllow}}};

Result<std::uint32_t> read_limit(std::string_view text) {
  const auto limit = to_number<std::uint32_t>(text);
  if (limit && *limit <= kMaxMissedLimit) return *limit;
  return unexpected_value("a whole number from 0 to " + std::to_string(kMaxMissedLimit), text);
}

// Other dialects put values into the expression that have members of their own here.
Result<void> read_cron(std::string_view text, Fields& fields) {
  constexpr std::string_view kEvery = "@every ";
  LICTOR_TRY(const std::string all, read_string(text));
  std::string_view expression = trimmed(all);
  for (const std::string_view zone : {"CRON_TZ=", "TZ="}) {
    if (!expression.starts_with(zone)) continue;
    const std::size_t end = std::min(expression.find_first_of(" \t"), expression.size());
    fields.cron_zone = expression.substr(zone.size(), end - zone.size());
    expression = trimmed(expression.substr(end));
    break;
  }
  if (expression.starts_with(kEvery)) {
    const std::string_view duration = trimmed(expression.substr(kEvery.size()));
    return store(read_seconds(json_quoted(duration)), fields.cron_every);
  }
  return store(schedule::Cron::parse(expression), fields.cron);
}

// The zone's name, from the cron expression or the member.
Result<std::string> zone_of(const Fields& fields) {
  if (fields.cron_zone.empty() || fields.zone_name.empty()) {
    return fields.cron_zone + fields.zone_name;
  }
  if (fields.cron_zone == fields.zone_name) return fields.zone_name;
  return unexpected_value("the zone that cron names, " + fields.cron_zone, fields.zone_name);
}

// Whether the field decides when the ticks are.
bool is_of_rule(std::string_view name) {
  constexpr std::array<std::string_view, 6> kFields{"cron",     "every", "at",
                                                    "timezone", "start", "end"};
  return std::find(kFields.begin(), kFields.end(), name) != kFields.end();
}

Result<void> read_field(std::string_view name, std::string_view text, Fields& fields) {
  if (text == "null") return {};  // how many libraries write "not set"
  if (name == "cron") return read_cron(text, fields);
  if (name == "every") return store(read_seconds(text), fields.every);
  if (name == "at") return store(read_ticks(text), fields.at);
  if (name == "timezone") return store(read_string(text), fields.zone_name);
  if (name == "start") return store(read_tick(text), fields.start);
  if (name == "end") return store(read_tick(text), fields.end);
  if (name == "lastTick") return store(read_tick(text), fields.last_tick);
  if (name == "lastTask") return store(read_string(text), fields.last_task);
  if (name == "missed") return store(read_name(text, kPolicies), fields.missed.policy);
  if (name == "missedLimit") return store(read_limit(text), fields.missed.limit);
  if (name == "missedMaxAge") return store(read_seconds(text), fields.missed.max_age);
  if (name == "overlap") return store(read_name(text, kOverlaps), fields.overlap);
  if (name == "paused") return store(read_bool(text), fields.paused);
  if (name == "fromConfig") return store(read_bool(text), fields.from_config);
  if (name == "jitter") {
    LICTOR_TRY(const Duration jitter, read_duration(text));
    fields.jitter = floor<std::chrono::milliseconds>(jitter);
  }
  if (name == "task") {
    if (!text.starts_with('{')) return unexpected_value("a task's record, a JSON object", text);
    fields.task = text;
  }
  return {};
}

// The members that the configuration sets; the others come from leaders and operators.
std::string configured_part(std::string_view record) {
  constexpr std::array<std::string_view, 4> kOthers{"lastTick", "lastTask", "paused", "fromConfig"};
  std::string part;
  for (MemberWalk member{record}; member.next();) {
    if (std::find(kOthers.begin(), kOthers.end(), member.name()) != kOthers.end()) continue;
    part.append(member.name()).append(1, ':').append(member.value_text()).append(1, ',');
  }
  return part;
}

// Cron, every or at.
// Errors: kInvalid, none or several of them. "@every" in cron is an `every`.
Result<decltype(schedule::Plan::rule)> rule_of(Fields& fields) {
  std::string found;
  for (const auto& [there, name] : {std::pair{fields.cron || fields.cron_every, "cron"},
                                    {fields.every.has_value(), "every"},
                                    {fields.at.has_value(), "at"}}) {
    if (there) found += (found.empty() ? "" : " and ") + std::string{name};
  }
  if (found == "cron" && fields.cron_every) return schedule::Every{*fields.cron_every};
  if (found == "cron") return *fields.cron;
  if (found == "every") return schedule::Every{*fields.every};
  if (found == "at") return schedule::At{*std::move(fields.at)};
  return unexpected_value("one of cron, every and at", found.empty() ? "none of them" : found);
}

// A template that makes a task for one tick does so for all: a tick's text has one form.
Result<void> check_template(std::string_view name, const Definition& record) {
  for (MemberWalk member{record.task}; member.next();) {
    if (member.name() == "executeAt" && member.value_text() != "null") {
      return fail(ErrorCode::kInvalid,
                  "task: executeAt: expected none, since each tick sets it, got " +
                      excerpt(member.value_text()));
    }
  }
  if (const auto made = check_record(tick_task(name, record, Tick{})); !made) {
    return in_field("task", made.error());
  }
  return {};
}

// The template with the tick's time for each "{tick}". In JSON that text can only be in a string,
// and a tick's text needs no escapes.
std::string with_tick(std::string_view json_text, Tick tick) {
  const std::string tick_text = schedule::tick_text(tick);
  std::string text;
  for (std::size_t at = 0; (at = json_text.find(kTick)) != std::string_view::npos;) {
    text.append(json_text.substr(0, at)).append(tick_text);
    json_text.remove_prefix(at + kTick.size());
  }
  return text.append(json_text);
}

}  // namespace

Result<Definition> read_schedule(std::string_view name, std::string_view record,
                                 schedule::Zones& zones) {
  if (name.find('@') != std::string_view::npos) {
    return fail(ErrorCode::kInvalid,
                "its name has \"@\", which newer versions of Consul refuse, as in its tasks' ids");
  }
  if (name.find("\xef\xbf\xbd") != std::string_view::npos) {  // Consul shows other bytes so
    return fail(ErrorCode::kInvalid, "its name is not valid UTF-8");
  }
  if (const auto object = check_object(record); !object) return tl::unexpected(object.error());
  Fields fields;
  for (MemberWalk member{record}; member.next();) {
    if (const auto read = read_field(member.name(), member.value_text(), fields); !read) {
      return in_field(member.name(), read.error());
    }
    if (is_of_rule(member.name())) {
      fields.rule.append(member.name()).append(member.value_text());
    }
  }
  LICTOR_TRY(auto rule, rule_of(fields));
  const auto zone_name = zone_of(fields);
  if (!zone_name) return in_field("timezone", zone_name.error());
  auto zone = zones.find(*zone_name);
  if (!zone) return in_field("timezone", zone.error());
  LICTOR_TRY(auto schedule, schedule::Schedule::make(
                                {std::move(rule), *std::move(zone), fields.start, fields.end}));
  if (fields.task.empty())
    return fail(ErrorCode::kInvalid, "task: expected a task's record, got nothing");
  Definition read{std::move(schedule),
                  std::move(fields.rule),
                  fields.missed,
                  fields.overlap,
                  fields.jitter,
                  fields.paused,
                  fields.last_tick,
                  std::move(fields.last_task),
                  unstamped_record(fields.task),
                  fields.from_config ? configured_part(record) : std::string{}};
  return check_template(name, read).map([&] { return std::move(read); });
}

// Afterwards the cache holds exactly this listing, so deleted schedules leave it.
std::vector<core::SchedulesListed::Entry> ScheduleCache::read(const Layout& layout,
                                                              std::vector<KvEntry> listing) {
  const std::lock_guard lock{mutex_};
  std::map<std::string, core::SchedulesListed::Entry> read;
  std::vector<core::SchedulesListed::Entry> entries;
  for (KvEntry& kv : listing) {
    if (!kv.key.starts_with(layout.schedules_prefix) || kv.key.ends_with('/')) continue;
    core::SchedulesListed::Entry entry;
    if (const auto known = known_.find(kv.key);
        known != known_.end() && known->second.modify_index == kv.modify_index) {
      entry = std::move(known->second);
    } else {
      entry.key = kv.key;
      entry.name = kv.key.substr(layout.schedules_prefix.size());
      entry.tasks_prefix = layout.tasks_prefix;
      entry.create_index = kv.create_index;
      entry.modify_index = kv.modify_index;
      entry.flags = kv.flags;
      entry.record = std::make_shared<const std::string>(std::move(kv.value));
      if (auto definition = read_schedule(entry.name, *entry.record, zones_)) {
        if (!definition->last_task.empty()) {
          entry.last_task_key = layout.task_key(definition->last_task);
        }
        entry.definition = std::make_shared<const schedule::Definition>(*std::move(definition));
      } else {
        entry.error = std::move(definition.error().message);
      }
    }
    entries.push_back(entry);
    read.insert_or_assign(std::move(kv.key), std::move(entry));
  }
  known_ = std::move(read);
  return entries;
}

void ScheduleCache::forget() {
  const std::lock_guard lock{mutex_};
  zones_.forget();
  known_.clear();
}

std::string with_member(std::string_view object, std::string_view name, std::string_view value) {
  std::string text;
  const char* copied = object.data();  // up to here
  const char* last = nullptr;          // the end of the last member
  bool found = false;
  for (MemberWalk member{object}; member.next();) {
    const std::string_view old = member.value_text();
    last = old.data() + old.size();
    if (member.name() != name) continue;
    text.append(copied, old.data()).append(value);
    copied = last;
    found = true;
  }
  if (!found) {
    const bool first = last == nullptr;
    if (first) last = object.data() + object.find('{') + 1;
    text.append(copied, last).append(first ? "" : ",");
    append_quoted(text, name);
    text.append(":").append(value);
    copied = last;
  }
  return text.append(copied, object.data() + object.size());
}

std::string with_last_tick(std::string_view record, Tick last, std::string_view task_id) {
  std::string text = with_member(record, "lastTick", '"' + schedule::tick_text(last) + '"');
  return task_id.empty() ? text : with_last_task(text, task_id);
}

std::string with_last_task(std::string_view record, std::string_view task_id) {
  return with_member(record, "lastTask", json_quoted(task_id));
}

std::string with_paused(std::string_view record, bool paused) {
  return with_member(record, "paused", paused ? "true" : "false");
}

std::string as_configured(std::string_view record) {
  return with_member(record, "fromConfig", "true");
}

bool has_member(std::string_view record, std::string_view name) {
  for (MemberWalk member{record}; member.next();) {
    if (member.name() == name && member.value_text() != "null") return true;
  }
  return false;
}

std::string tick_task(std::string_view name, const Definition& schedule, Tick tick) {
  std::string text = with_tick(schedule.task, tick);
  const auto delay = schedule::delay_of(name, schedule.jitter);
  const std::string execute_at =
      delay.count() == 0 ? schedule::tick_text(tick) : format_rfc3339(tick + delay);
  text = with_member(text, "executeAt", '"' + execute_at + '"');
  if (schedule.overlap != Overlap::kQueue) return text;
  if (has_member(text, "serialKey")) return text;
  return with_member(text, "serialKey", json_quoted("schedule/" + std::string{name}));
}

}  // namespace lictor::wire
