#include "client/new_record.h"

#include <algorithm>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time_text.h"
#include "core/options.h"
#include "wire/json_text.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::client {
namespace {

using wire::json_quoted;

tl::unexpected<Error> refuse(std::string_view where, const std::string& message) {
  return fail(ErrorCode::kInvalid, std::string{where} + ": " + message);
}

std::string ms_text(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

// What the daemon would say of the record.
Result<void> check_new_record(const std::string& record) {
  if (const std::size_t most = core::QueueOptions{}.max_value_bytes - core::kClaimBytes;
      record.size() > most) {
    return fail(ErrorCode::kTooLarge, "expected a record of at most " + std::to_string(most) +
                                          " bytes, got " + std::to_string(record.size()) +
                                          "; put what is large elsewhere and name it");
  }
  return wire::check_record(record);
}

}  // namespace

void ObjectText::add(std::string_view name, std::string_view json) {
  add_raw(json_quoted(name), json);
}

void ObjectText::add_raw(std::string_view quoted_name, std::string_view json) {
  text_ += text_.size() > 1 ? "," : "";
  text_ += quoted_name;
  text_ += ':';
  text_ += json;
}

Result<NewRecord> make_record(const RecordFields& fields) {
  ObjectText record;
  record.add("taskId", json_quoted(fields.id));
  record.add("taskTime", ms_text(fields.task_time));  // milliseconds: the order within a second
  record.add("taskTaken", "false");
  record.add("taskType", json_quoted(fields.type));
  record.add("taskPara", fields.para);
  if (fields.execute_at) record.add("executeAt", json_quoted(format_rfc3339(*fields.execute_at)));
  if (fields.expire_at) record.add("expireAt", json_quoted(format_rfc3339(*fields.expire_at)));
  if (fields.serial_key) record.add("serialKey", json_quoted(*fields.serial_key));
  if (fields.max_attempts) record.add("maxAttempts", std::to_string(*fields.max_attempts));
  if (fields.timeout) record.add("timeout", json_quoted(*fields.timeout));
  if (fields.backoff) record.add("backoff", *fields.backoff);
  NewRecord made{fields.id, record.take()};
  if (auto good = check_new_record(made.record); !good) {
    return tl::unexpected(std::move(good.error()));
  }
  return made;
}

Result<NewRecord> make_record(const NewTask& task, WallTime now, TaskIds& ids) {
  RecordFields fields;
  fields.id = task.id.empty() ? ids.next(now) : task.id;
  if (const std::string fault = task_id_fault(fields.id); !fault.empty()) {
    return refuse("id", '"' + excerpt(fields.id) + "\" " + fault);
  }
  for (const auto& [name, text] :
       {std::pair{"type", &task.type}, {"serial_key", &task.serial_key}}) {
    if (!is_utf8(*text)) return refuse(name, "expected UTF-8, got \"" + excerpt(*text) + '"');
  }
  fields.type = task.type;
  fields.task_time = task.time.value_or(now);
  fields.para = task.parameters.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  fields.execute_at = task.execute_at;
  fields.expire_at = task.expire_at;
  if (!task.serial_key.empty()) fields.serial_key = task.serial_key;
  fields.max_attempts = task.max_attempts;
  if (task.timeout) fields.timeout = format_duration(*task.timeout);
  return make_record(fields);
}

Result<NewRecord> RecordCompleter::complete(std::string_view text, WallTime now) {
  const auto written = wire::split_object(text);
  if (!written && !is_utf8(text)) {
    return fail(ErrorCode::kInvalid, "expected a JSON object, got bytes that are not UTF-8");
  }
  if (!written) return tl::unexpected(written.error());
  const std::string cleaned = wire::unstamped_record(*written);
  const std::vector<wire::Member> members = wire::split_valid_object(cleaned);

  const auto has = [&](std::string_view name) {
    return std::any_of(members.begin(), members.end(), [&](const wire::Member& member) {
      return member.name == name && member.value_text != "null";
    });
  };
  // Of a name that is written twice the last one counts, as when the record is read.
  NewRecord task;
  for (const wire::Member& member : members) {
    if (member.name != "taskId" || member.value_text == "null") continue;
    const auto id = wire::parse_json(member.value_text);
    task.id = member.value_text.starts_with('"') ? id->get<std::string>() : std::string{};
    if (const std::string fault = task_id_fault(task.id); !fault.empty()) {
      return refuse("taskId", member.value_text.starts_with('"')
                                  ? excerpt(member.value_text) + ' ' + fault
                                  : "expected a string, got " + excerpt(member.value_text));
    }
  }

  const WallTime time = std::max(now, last_time_);
  const bool new_id = task.id.empty();
  if (new_id) task.id = ids_.next(time);
  const bool behind = time == last_time_ && task.id <= last_id_;
  const WallTime stamped = behind ? time + std::chrono::milliseconds{1} : time;

  ObjectText record;
  if (new_id) record.add("taskId", json_quoted(task.id));
  if (!has("taskTime")) record.add("taskTime", ms_text(stamped));
  if (!has("taskType") && !type_.empty()) record.add("taskType", json_quoted(type_));
  for (const wire::Member& member : members) {
    const bool replaced =
        member.value_text == "null" && (member.name == "taskId" || member.name == "taskTime" ||
                                        (member.name == "taskType" && !type_.empty()));
    if (!replaced) record.add_raw(member.name_text, member.value_text);
  }
  task.record = record.take();
  if (auto good = check_new_record(task.record); !good) {
    return tl::unexpected(std::move(good.error()));
  }
  last_time_ = stamped;
  last_id_ = task.id;
  return task;
}

}  // namespace lictor::client
