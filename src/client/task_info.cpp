#include "client/task_info.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "client/locks.h"
#include "core/task.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A restarted daemon takes up its old session, but its earlier claims are lost: compare the
// instance, if the lock names one.
bool is_held(const core::Claim& claim, const LockView& lock) {
  if (lock.session.empty() || claim.session != lock.session) return false;
  const std::string instance = text_member(lock.value, "instance");
  return instance.empty() || claim.nonce.starts_with(instance + '-');
}

// The state of a claimed task.
TaskState claimed_state(const core::Stamp& stamp, const LockView& lock) {
  const bool held = stamp.claim && is_held(*stamp.claim, lock);
  return held || !lock.known ? TaskState::kRunning : TaskState::kOrphan;
}

std::uint32_t count_field(const json& object, const char* name) {
  const json& count = json_member(object, name);
  return count.is_number_unsigned() ? count.get<std::uint32_t>() : 0;
}

// std::nullopt if it overflows Duration: anybody may have written it.
std::optional<Duration> milliseconds_field(const json& object, const char* name) {
  constexpr auto longest = std::chrono::floor<std::chrono::milliseconds>(Duration::max());
  const json& member = json_member(object, name);
  const auto count = member.is_number_unsigned() ? member.get<std::uint64_t>() : ~std::uint64_t{0};
  if (count > static_cast<std::uint64_t>(longest.count())) return std::nullopt;
  return std::chrono::milliseconds{count};
}

// A done task or dead letter, as far as its key shows.
TaskInfo ended_task(TaskState state, std::string_view prefix, wire::KvEntry entry) {
  TaskInfo view;
  view.state = state;
  view.id = view.task_id = entry.key.substr(std::min(prefix.size(), entry.key.size()));
  view.key = std::move(entry.key);
  view.create_index = entry.create_index;
  view.modify_index = entry.modify_index;
  view.record = std::move(entry.value);
  return view;
}

// Reads the task's record within `ended`, which may be JSON that is no task, as when its time
// cannot be read.
void read_producer_fields(const json& ended, TaskInfo& view) {
  const json raw = parse_json(text_member(ended, "raw")).value_or(json{});
  // Make no copy: it recurses, and the record may be nested without end.
  const json& record = ended.contains("record") ? ended.at("record") : raw;
  view.type = text_member(record, "taskType");
  view.serial_key = text_member(record, "serialKey");
}

ordered_json time_or_null(const std::optional<WallTime>& time) {
  return time ? ordered_json(format_rfc3339(*time)) : ordered_json{};
}

}  // namespace

// A record that is too large is never claimed, whatever it says; so the size is checked first.
TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry, const Locks& locks,
                   WallTime now) {
  TaskInfo view;
  view.key = entry.key;
  view.id = view.task_id = layout.task_id(entry.key).value_or(entry.key);
  view.create_index = entry.create_index;
  view.modify_index = entry.modify_index;
  core::StoredRecord stored = wire::read_record(layout, std::move(entry));
  const std::size_t size = wire::record_size(stored);
  const std::size_t most = wire::record_limit(layout, view.key);
  const std::string too_large =
      size <= most ? ""
                   : fmt::format(
                         "{} bytes are too large to be claimed: a transaction holds records "
                         "of up to {}",
                         size, most);
  if (const auto* bad = std::get_if<core::BadRecord>(&stored)) {
    view.state = too_large.empty() ? TaskState::kUnreadable : TaskState::kTooLarge;
    view.error = too_large.empty() ? bad->error : too_large;
    view.record = *bad->record;
    return view;
  }
  auto& task = std::get<core::Task>(stored);
  view.time = task.execute_at ? task.execute_at : task.task_time;
  view.due = core::due_of(task);
  view.attempt = task.stamp.attempt;
  view.lost = task.stamp.lost;
  view.record = *task.record;
  view.type = std::move(task.type);
  view.serial_key = std::move(task.serial_key);
  view.error = too_large.empty() ? task.stamp.error : too_large;
  if (task.stamp.claim && task.stamp.taken) {
    view.node = task.stamp.claim->node;
    view.session = task.stamp.claim->session;
    if (task.stamp.claim->since != WallTime{}) view.since = task.stamp.claim->since;
  }
  if (!too_large.empty()) {
    view.state = TaskState::kTooLarge;
  } else if (task.stamp.taken) {
    view.state = claimed_state(task.stamp, locks.of(view));
  } else {
    view.state = view.due && *view.due > now ? TaskState::kScheduled : TaskState::kWaiting;
  }
  return view;
}

TaskInfo view_dead_letter(const wire::Layout& layout, wire::KvEntry entry) {
  TaskInfo view = ended_task(TaskState::kDead, layout.dead_prefix, std::move(entry));
  const auto letter = parse_json(view.record, kAnyDepth);
  if (!letter || !letter->is_object()) {
    view.error = "this is not a dead letter of lictor";
    return view;
  }
  const std::string key = text_member(*letter, "key");
  view.task_id = key.empty() ? view.id : layout.task_id(key).value_or("");
  view.reason = text_member(*letter, "reason");
  view.error = text_member(*letter, "error");
  view.output_tail = text_member(*letter, "output_tail");
  view.node = text_member(*letter, "node");
  view.attempt = count_field(*letter, "attempts");
  view.lost = count_field(*letter, "lost");
  view.since = parse_rfc3339(text_member(*letter, "at"));
  read_producer_fields(*letter, view);
  return view;
}

TaskInfo view_done(const wire::Layout& layout, wire::KvEntry entry) {
  TaskInfo view = ended_task(TaskState::kDone, layout.done_prefix, std::move(entry));
  const auto done = parse_json(view.record, kAnyDepth);
  if (!done || !done->is_object()) {
    view.error = "this is not a record of lictor";
    return view;
  }
  const std::string by = text_member(*done, "cancelled_by");
  if (!by.empty()) view.state = TaskState::kCancelled;
  view.node = by.empty() ? text_member(*done, "node") : by;
  view.attempt = count_field(*done, "attempts");
  view.lost = count_field(*done, "lost");
  view.started = parse_rfc3339(text_member(*done, "started"));
  view.since = parse_rfc3339(text_member(*done, "at"));
  view.took = milliseconds_field(*done, "took_ms");
  read_producer_fields(*done, view);
  // The text as written, since parsing may change a number.
  const auto members = split_object(view.record);
  for (const JsonMember& member : members.value_or(std::vector<JsonMember>{})) {
    if (member.name == "result") view.result = member.value_text;
  }
  return view;
}

std::string_view state_name(TaskState state) {
  static constexpr std::array<std::string_view, 10> kNames{
      "running",   "running",    "waiting", "scheduled", "unreadable",
      "too_large", "unnameable", "dead",    "done",      "cancelled"};
  static_assert(kNames.size() == static_cast<std::size_t>(TaskState::kCancelled) + 1);
  return kNames.at(static_cast<std::size_t>(state));
}

std::string_view state_text(TaskState state) {
  if (state == TaskState::kOrphan) return "running (orphan)";
  if (state == TaskState::kTooLarge) return "too large";
  return state_name(state);
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a word is a number or a part of an id; "db7" and "utf8" are names.
bool is_counted(std::string_view word) {
  constexpr std::size_t kShortestId = 4;
  if (std::none_of(word.begin(), word.end(), is_digit)) return false;
  const bool is_hex = word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  return is_digit(word.front()) || (is_hex && word.size() >= kShortestId);
}

}  // namespace

std::string error_kind(std::string_view error, std::string_view reason) {
  if (reason == "unreadable") error = error.substr(0, error.find(", got "));
  const std::size_t colon = std::min(error.find(": "), error.size());
  std::string kind{error.substr(0, colon)};
  std::string word;
  const auto end_word = [&] {
    kind += is_counted(word) ? "#" : word;
    word.clear();
  };
  for (const char c : error.substr(colon)) {
    if (is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      word += c;
    } else {
      end_word();
      kind += c;
    }
  }
  end_word();
  return kind;
}

std::string described(const TaskInfo& task) {
  std::string text{state_text(task.state)};
  if (!task.node.empty()) {
    text += (task.state == TaskState::kCancelled ? " by " : " on ") + task.node;
  }
  if (task.state == TaskState::kScheduled && task.due) {
    text += ", due " + relative_time(*task.due, wall_now());
  }
  if (task.attempt > 0) text += ", attempt " + std::to_string(task.attempt);
  if (!task.error.empty()) text += ": " + task.error;
  return printable(text);
}

TaskState listed_state(TaskState state) {
  return state == TaskState::kOrphan      ? TaskState::kRunning
         : state == TaskState::kCancelled ? TaskState::kDone
                                          : state;
}

ListRank list_rank(const TaskInfo& task) {
  const TaskState state = listed_state(task.state);
  const bool newest_first = state >= TaskState::kDead;
  const auto time = state == TaskState::kScheduled ? task.due
                    : newest_first                 ? task.since
                                                   : task.time;
  const std::int64_t ms = time.value_or(WallTime::min()).time_since_epoch().count();
  return {static_cast<int>(state), newest_first ? ~ms : ms,
          newest_first ? ~task.create_index : task.create_index};
}

bool listed_before(const TaskInfo& a, const TaskInfo& b) {
  const auto order = list_rank(a) <=> list_rank(b);
  return order == 0 ? a.key < b.key : order < 0;
}

std::string text_of(const json& object, const char* name) {
  const json& value = json_member(object, name);
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json{} : ordered_json(text);
}

ordered_json pause_json(const PauseState& state) {
  if (!state.paused) return nullptr;
  return {{"by", text_or_null(state.by)},
          {"at", time_or_null(state.at)},
          {"reason", text_or_null(state.reason)}};
}

ordered_json task_json(const TaskInfo& task) {
  return {{"id", task.id},
          {"task_id", text_or_null(task.task_id)},
          {"key", task.key},
          {"type", text_or_null(task.type)},
          {"state", state_name(task.state)},
          {"orphan", task.state == TaskState::kOrphan},
          {"time", time_or_null(task.time)},
          {"due", time_or_null(task.due)},
          {"since", time_or_null(task.since)},
          {"started", time_or_null(task.started)},
          {"took_ms", task.took ? ordered_json(task.took->count() / 1'000'000) : ordered_json{}},
          {"attempt", task.attempt},
          {"lost", task.lost},
          {"node", text_or_null(task.node)},
          {"serial_key", text_or_null(task.serial_key)},
          {"reason", text_or_null(task.reason)},
          {"error", text_or_null(task.error)},
          {"bytes", task.record.size()},
          {"create_index", task.create_index},
          {"modify_index", task.modify_index}};
}

ordered_json whole_task_json(const TaskInfo& task) {
  ordered_json out = task_json(task);
  out["session"] = text_or_null(task.session);
  if (task.state == TaskState::kDone) {
    out["result"] = parse_json(task.result) ? ordered_json::parse(task.result) : ordered_json{};
  }
  out["output_tail"] = text_or_null(task.output_tail);
  add_value_json(task.record, out);
  return out;
}

void add_value_json(const std::string& value, ordered_json& out) {
  if (parse_json(value)) {
    out["value"] = ordered_json::parse(value);
  } else if (is_utf8(value)) {
    out["raw"] = value;
  } else {
    out["raw_base64"] = base64_encode(value);
  }
}

}  // namespace lictor::client
