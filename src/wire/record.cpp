#include "wire/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"

namespace lictor::wire {
namespace {

using nlohmann::json;

constexpr std::int64_t kFirstMilliseconds = 100'000'000'000;     // 10^11; below it, seconds
constexpr std::int64_t kLastMilliseconds = 253'402'300'799'999;  // the end of the year 9999

constexpr std::string_view kTaken = "taskTaken";
constexpr std::array<std::string_view, 6> kStampFields{kTaken,        "taskAttempt", "taskLost",
                                                       "taskRetryAt", "taskClaim",   "taskError"};

constexpr std::array<std::string_view, 10> kProducerFields{
    "taskId",   "taskType",  "taskPara",    "taskTime", "executeAt",
    "expireAt", "serialKey", "maxAttempts", "timeout",  "backoff"};

bool is_stamp_field(std::string_view name) {
  return std::find(kStampFields.begin(), kStampFields.end(), name) != kStampFields.end();
}

bool is_producer_field(std::string_view name) {
  return std::find(kProducerFields.begin(), kProducerFields.end(), name) != kProducerFields.end();
}

// The text between the quotes of a JSON string; other text unchanged.
std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"') return text.substr(1, text.size() - 2);
  return text;
}

Result<bool> read_taken(std::string_view text) {
  if (text == "true" || text == "\"true\"") return true;
  if (text == "false" || text == "\"false\"") return false;
  return unexpected_value(R"(true, false, "true" or "false")", text);
}

// `least`: 1 for a limit; 0 for a counter, which must have room to go on: a stranger's 4294967295
// counts as a billion.
Result<std::uint32_t> read_count(std::string_view text, std::uint32_t least) {
  const auto count = to_number<std::uint32_t>(text);
  if (count && least == 0) return std::min(*count, 1'000'000'000U);
  if (count && *count >= least) return *count;
  return unexpected_value("a whole number from " + std::to_string(least) + " to 4294967295", text);
}

// An unknown member of a backoff is an error: its author meant a setting.
Result<core::Backoff> read_backoff(std::string_view text) {
  const auto members = split_object(text);
  if (!members)
    return unexpected_value(R"(an object such as {"initial": "1s", "max": "5m"})", text);
  core::Backoff backoff;
  for (const JsonMember& member : *members) {
    if (member.name == "initial" || member.name == "max") {
      LICTOR_TRY((member.name == "max" ? backoff.max : backoff.initial),
                 read_duration(member.value_text));
    } else if (member.name == "factor" || member.name == "jitter") {
      const bool factor = member.name == "factor";
      const auto value = parse_json(member.value_text, kAnyDepth);
      const double number = value->is_number() ? value->get<double>() : -1.0;
      if (number < (factor ? 1.0 : 0.0) || number > (factor ? 100.0 : 1.0)) {
        return unexpected_value(
            factor ? "factor to be a number from 1 to 100" : "jitter to be a number from 0 to 1",
            member.value_text);
      }
      (factor ? backoff.factor : backoff.jitter) = number;
    } else {
      return unexpected_value("initial, max, factor or jitter", member.name_text);
    }
  }
  return backoff;
}

// Used to show claims and to recognise our own; a claim in another form cannot be ours.
std::optional<core::Claim> read_claim(std::string_view text) {
  const auto value = parse_json(text, kAnyDepth);
  if (!value || !value->is_object()) return std::nullopt;
  core::Claim claim{text_member(*value, "node"),
                    text_member(*value, "session"),
                    text_member(*value, "nonce"),
                    {}};
  claim.since = parse_rfc3339(text_member(*value, "since")).value_or(WallTime{});
  return claim;
}

Result<void> read_field(std::string_view name, std::string_view text, core::Task& task) {
  if (text == "null" && name != "taskPara") return {};  // how many libraries write "not set"
  if (name == "taskId") return store(read_string(text), task.id);
  if (name == "taskType" && text == R"("")") {
    return unexpected_value("a string that names the kind of task", text);
  }
  if (name == "taskType") return store(read_string(text), task.type);
  if (name == "taskTime") return store(read_time(text), task.task_time);
  if (name == "executeAt") return store(read_time(text), task.execute_at);
  if (name == "expireAt") return store(read_time(text), task.expire_at);
  if (name == "serialKey") return store(read_string(text), task.serial_key);
  if (name == "maxAttempts") return store(read_count(text, 1), task.max_attempts);
  if (name == "timeout") return store(read_duration(text), task.timeout);
  if (name == "backoff") return store(read_backoff(text), task.backoff);
  if (name == "taskTaken") return store(read_taken(text), task.stamp.taken);
  if (name == "taskAttempt") return store(read_count(text, 0), task.stamp.attempt);
  if (name == "taskLost") return store(read_count(text, 0), task.stamp.lost);
  if (name == "taskRetryAt") return store(read_time(text), task.stamp.retry_at);
  if (name == "taskClaim") task.stamp.claim = read_claim(text);
  if (name == "taskError" && text.starts_with('"')) {
    task.stamp.error = parse_json(text)->get<std::string>();
  }
  return {};
}

// The name without case, "_" and "-": other languages spell names so.
std::string bare_name(std::string_view name) {
  std::string bare = lowered(name);
  std::erase_if(bare, [](char c) { return c == '_' || c == '-'; });
  return bare;
}

Result<void> read_fields(std::string_view object, core::Task& task) {
  for (MemberWalk member{object}; member.next();) {
    if (auto read = read_field(member.name(), member.value_text(), task); !read) {
      return in_field(member.name(), read.error());
    }
    if (is_stamp_field(member.name())) {
      const bool as_new = member.name() == kTaken && unquoted(member.value_text()) == "false";
      task.is_stamped = task.is_stamped || !as_new;
    } else {
      task.has_other_fields = task.has_other_fields || !is_producer_field(member.name());
    }
  }
  if (!task.type.empty()) return {};
  const std::string misspelt = misspelt_fields(object);  // it may have another spelling
  return fail(ErrorCode::kInvalid,
              "taskType: expected a string that names the kind of task, got nothing" +
                  (misspelt.empty() ? "" : "; " + misspelt));
}

Result<void> read_text(std::string_view record, core::Task& task) {
  return check_object(record).and_then([&] { return read_fields(record, task); });
}

// Empty fields are left out: most records have none of them.
void append_stamp(std::string& text, const core::Stamp& stamp) {
  const auto string = [&](std::string_view before, std::string_view value) {
    text += before;
    append_quoted(text, value);
  };
  if (stamp.attempt != 0) text.append(",\"taskAttempt\":").append(std::to_string(stamp.attempt));
  if (stamp.lost != 0) text.append(",\"taskLost\":").append(std::to_string(stamp.lost));
  const auto time = [&](std::string_view before, WallTime at) {
    text += before;
    text += '"';
    text += format_rfc3339(at);
    text += '"';
  };
  if (stamp.retry_at) time(",\"taskRetryAt\":", *stamp.retry_at);
  if (stamp.claim) {
    const core::Claim& claim = *stamp.claim;
    string(",\"taskClaim\":{\"node\":", claim.node);
    string(",\"session\":", claim.session);
    string(",\"nonce\":", claim.nonce);
    time(",\"since\":", claim.since);
    text += '}';
  }
  if (!stamp.error.empty()) string(",\"taskError\":", excerpt(stamp.error, kMaxErrorBytes));
}

constexpr std::size_t kStampBytes = 300;  // usually enough for a claim
constexpr std::string_view kTakenMember = R"("taskTaken":true)";
constexpr std::string_view kNotTakenMember = R"("taskTaken":false)";

// `before`: the old text of the value, whose form stays.
void append_taken(std::string& text, std::string_view before, bool taken) {
  const std::string_view quote = before.starts_with('"') ? "\"" : "";
  text += quote;
  text += taken ? "true" : "false";
  text += quote;
}

// Copies the kept parts in as few pieces as possible, with the producer's own spacing.
std::string rewrite(std::string_view object, const core::Stamp& stamp, bool add_taken) {
  std::string text;
  text.reserve(object.size() + kStampBytes);
  text += '{';
  const char* begin = nullptr;  // of the kept text up to `end` that is not copied yet
  const char* end = nullptr;
  bool goes_on = false;  // where the text ends
  const auto copy = [&] {
    if (begin == nullptr || begin == end) return;
    if (!goes_on && text.size() > 1) text += ',';
    text.append(begin, end);
  };
  bool taken_written = false;
  for (MemberWalk member{object}; member.next();) {
    const std::string_view value = member.value_text();
    const bool taken = member.name() == kTaken;
    if (is_stamp_field(member.name()) && (!taken || taken_written)) {
      copy();
      begin = nullptr;
      goes_on = false;
      continue;
    }
    if (begin == nullptr) begin = member.name_text().data();
    end = value.data() + value.size();
    if (!taken) continue;
    end = value.data();
    copy();
    append_taken(text, value, stamp.taken);
    begin = end = value.data() + value.size();
    goes_on = taken_written = true;
  }
  copy();
  if (!taken_written && add_taken) {
    if (text.size() > 1) text += ',';
    text += stamp.taken ? kTakenMember : kNotTakenMember;
  }
  append_stamp(text, stamp);
  text += '}';
  return text;
}

// The value at the queue's JSON pointer as text; empty: there is no scalar.
std::string serial_key_by(const std::string& pointer, std::string_view record) {
  const auto parsed = parse_json(record, kAnyDepth);
  if (!parsed) return {};
  const json::json_pointer where{pointer};
  if (!parsed->contains(where)) return {};
  const json& value = (*parsed)[where];
  if (value.is_string()) return value.get<std::string>();
  return value.is_primitive() && !value.is_null() ? value.dump() : std::string{};
}

// The size of an unreadable record as text in its dead letter; std::nullopt: use base64. Escapes
// can make text six times as long; base64 adds a third. Short records stay text, so that people can
// read them.
std::optional<std::size_t> text_size(std::string_view record) {
  constexpr std::size_t kShort = 64 * 1024;
  if (!is_utf8(record)) return std::nullopt;
  const std::size_t in_base64 = base64_size(record.size());
  const std::size_t size = json_quoted(record).size();
  const std::size_t most = record.size() < kShort ? in_base64 * 3 / 2 + 64 : in_base64;
  return size <= most ? std::optional{size} : std::nullopt;
}

}  // namespace

std::string misspelt_fields(std::string_view record) {
  std::string found;
  for (MemberWalk member{record}; member.next();) {
    const std::string_view name = member.name();
    constexpr std::size_t kLongest = 20;  // longest name that may be a misspelt one of ours
    if (is_producer_field(name) || is_stamp_field(name) || name.size() > kLongest) continue;
    const std::string bare = bare_name(name);
    for (const std::string_view known : kProducerFields) {
      // "executeat", "expiresAt"
      if (bare != lowered(known) && edits(name, known) != 1) continue;
      found += (found.empty() ? "" : ", ") + excerpt(name) + ": did you mean " +
               std::string{known} + '?';
    }
  }
  return found;
}

tl::unexpected<Error> in_field(std::string_view name, const Error& error) {
  return fail(ErrorCode::kInvalid, std::string{name} + ": " + error.message);
}

tl::unexpected<Error> unexpected_value(std::string_view expected, std::string_view got) {
  return fail(ErrorCode::kInvalid, "expected " + std::string{expected} + ", got " + excerpt(got));
}

Result<std::string> read_string(std::string_view text) {
  if (!text.starts_with('"')) return unexpected_value("a string", text);
  if (text.find('\\') == std::string_view::npos) return std::string{unquoted(text)};
  return parse_json(text)->get<std::string>();
}

Result<Duration> read_duration(std::string_view text) {
  const auto duration =
      text.starts_with('"') ? parse_duration(unquoted(text)) : std::optional<Duration>{};
  if (!duration)
    return unexpected_value(R"(a duration such as "90s", "10m" or "2h", at most 10 years)", text);
  return *duration;
}

Result<WallTime> read_time(std::string_view json_text) {
  const std::string_view text = unquoted(json_text);
  if (const auto whole = to_number<std::int64_t>(text); whole && *whole >= 0) {
    if (*whole < kFirstMilliseconds) return WallTime{std::chrono::seconds{*whole}};
    if (*whole <= kLastMilliseconds) return WallTime{std::chrono::milliseconds{*whole}};
  } else if (const auto decimal = to_number<double>(text);
             decimal && *decimal >= 0 && *decimal <= static_cast<double>(kLastMilliseconds)) {
    // To the millisecond: a double is exact to much less than that until the year 9999.
    const bool in_ms = *decimal >= static_cast<double>(kFirstMilliseconds);
    return WallTime{std::chrono::milliseconds{std::llround(in_ms ? *decimal : *decimal * 1000)}};
  }
  if (json_text.starts_with('"')) {
    if (const auto time = parse_rfc3339(text)) return *time;
  }
  auto refused = unexpected_value(
      R"(seconds since the epoch or a time such as "2026-11-21T09:30:00Z")", json_text);
  const std::string fault = rfc3339_fault(text);
  if (!fault.empty()) refused.value().message += ": " + fault;
  return refused;
}

core::StoredRecord read_record(const Layout& layout, KvEntry&& entry) {
  core::Task task;
  task.record = std::make_shared<const std::string>(std::move(entry.value));
  auto read = read_text(*task.record, task);
  if (!read) {
    return core::BadRecord{std::move(entry.key), entry.create_index, entry.modify_index,
                           std::move(read.error().message), std::move(task.record)};
  }
  if (task.serial_key.empty() && !layout.serialize_by.empty()) {
    task.serial_key = serial_key_by(layout.serialize_by, *task.record);
  }
  if (task.id.empty()) task.id = layout.task_id(entry.key).value_or(entry.key);
  task.key = std::move(entry.key);
  task.create_index = entry.create_index;
  task.modify_index = entry.modify_index;
  task.flags = entry.flags;
  return task;
}

std::string restamp_record(std::string_view record, const core::Stamp& stamp) {
  return rewrite(record, stamp, true);
}

std::string unstamped_record(std::string_view record) {
  return rewrite(check_object(record) ? record : "{}", {}, false);
}

std::shared_ptr<const std::string> unstamped_record(const core::Task& task) {
  const std::string& text = *task.record;
  if (!task.is_stamped && text.front() == '{' && text.back() == '}') return task.record;
  return std::make_shared<const std::string>(rewrite(text, {}, false));
}

Result<void> check_record(std::string_view record) {
  core::Task task;
  return read_text(record, task);
}

std::size_t raw_size(std::string_view record) {
  return std::string_view{R"("raw_base64":"")"}.size() +
         text_size(record).value_or(base64_size(record.size()));
}

std::string dead_letter(const core::BuryOp& op, std::string_view node) {
  std::string text = "{\"key\":" + json_quoted(op.key);
  if (op.readable) {
    text += ",\"record\":" + unstamped_record(*op.record);
  } else {
    text += text_size(*op.record) ? ",\"raw\":" + json_quoted(*op.record)
                                  : ",\"raw_base64\":\"" + base64_encode(*op.record) + '"';
  }
  text += ",\"reason\":" + json_quoted(op.reason) +
          ",\"error\":" + json_quoted(excerpt(op.error, kMaxErrorBytes)) +
          ",\"attempts\":" + std::to_string(op.stamp.attempt);
  if (op.stamp.lost != 0) text += ",\"lost\":" + std::to_string(op.stamp.lost);
  if (!op.output_tail.empty()) text += ",\"output_tail\":" + json_quoted(op.output_tail);
  text += ",\"at\":" + json_quoted(format_rfc3339(op.at)) + ",\"node\":" + json_quoted(node) + "}";
  return text;
}

std::string done_record(const core::DoneRecord& done, std::string_view node) {
  std::string text{'{'};
  if (done.record) text += "\"record\":" + unstamped_record(*done.record) + ',';
  if (!done.result.empty()) text += "\"result\":" + done.result + ',';
  if (done.result_left_out) text += "\"result_left_out\":true,";
  text += "\"attempts\":" + std::to_string(done.attempts);
  if (done.lost != 0) text += ",\"lost\":" + std::to_string(done.lost);
  return text + ",\"started\":" + json_quoted(format_rfc3339(done.started)) +
         ",\"at\":" + json_quoted(format_rfc3339(done.at)) +
         ",\"took_ms\":" + std::to_string((done.at - done.started).count()) +
         ",\"node\":" + json_quoted(node) + "}";
}

std::optional<WallTime> done_at(std::string_view value) {
  const auto members = split_object(value);
  if (!members) return std::nullopt;
  for (const JsonMember& member : *members) {
    if (member.name == "at") return parse_rfc3339(unquoted(member.value_text));
  }
  return std::nullopt;
}

}  // namespace lictor::wire
