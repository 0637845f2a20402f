#include "client/new_record.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "wire/layout.h"
#include "wire/record.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

// `where`: the field, as the producer names it.
tl::unexpected<Error> refuse(std::string_view where, const std::string& message) {
  return fail(ErrorCode::kInvalid, std::string{where} + ": " + message);
}

std::string ms_text(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

// Checks the size with a long key, since the queue is not known yet.
Result<void> check_size(const std::string& id, const std::string& record) {
  static const wire::Layout kLongest = wire::Layout::under(std::string(150, '/'), "");
  const std::string key = kLongest.task_key(id);
  if (limits::is_short_record(record.size(), key.size())) return {};
  const std::size_t most = wire::record_limit(kLongest, key);
  if (record.size() <= most) return {};
  return fail(ErrorCode::kTooLarge, "expected a record of at most " + std::to_string(most) +
                                        " bytes (what one transaction holds), got " +
                                        std::to_string(record.size()) +
                                        "; store large data elsewhere and refer to it");
}

// Refuses what the daemon would refuse.
Result<NewRecord> checked(NewRecord made) {
  return check_size(made.id, made.record)
      .and_then([&] { return wire::check_record(made.record); })
      .map([&] { return std::move(made); });
}

// Adds the fields that say what to run, and how. They are common to a task and to a schedule's
// template, which has no id and no time.
void add_work(const RecordFields& fields, ObjectText& record) {
  record.add("taskType", json_quoted(fields.type));
  record.add("taskPara", fields.para);
  if (fields.execute_at) record.add("executeAt", json_quoted(format_rfc3339(*fields.execute_at)));
  if (fields.expire_at) record.add("expireAt", json_quoted(format_rfc3339(*fields.expire_at)));
  if (fields.serial_key) record.add("serialKey", json_quoted(*fields.serial_key));
  if (fields.max_attempts) record.add("maxAttempts", std::to_string(*fields.max_attempts));
  if (fields.timeout) record.add("timeout", json_quoted(*fields.timeout));
  if (fields.backoff) record.add("backoff", *fields.backoff);
}

// The id among the members, or an empty text. The last of repeated names counts, as in wire/record.
Result<std::string> id_among(const std::vector<JsonMember>& members) {
  std::string id;
  for (const JsonMember& member : members) {
    if (member.name != "taskId" || member.value_text == "null") continue;
    id = wire::read_string(member.value_text).value_or("");
    if (const std::string fault = id_fault(id); !fault.empty()) {
      return refuse("taskId", member.value_text.starts_with('"')
                                  ? excerpt(member.value_text) + ' ' + fault
                                  : "expected a string, got " + excerpt(member.value_text));
    }
  }
  return id;
}

}  // namespace

void NewRecord::restamp(WallTime time) {
  record.replace(made_time->at, ms_text(made_time->time).size(), ms_text(time));
  made_time->time = time;
}

void ObjectText::add(std::string_view name, std::string_view json) {
  add_raw(json_quoted(name), json);
}

void ObjectText::add_raw(std::string_view quoted_name, std::string_view json) {
  add_members(quoted_name);
  text_ += ':';
  text_ += json;
}

void ObjectText::add_members(std::string_view members) {
  if (text_.size() > 1) text_ += ',';
  text_ += members;
}

std::string make_template(const RecordFields& fields) {
  ObjectText record;
  add_work(fields, record);
  return record.take();
}

Result<NewRecord> make_record(const RecordFields& fields) {
  ObjectText record;
  record.add("taskId", json_quoted(fields.id));
  const std::string time_text = ms_text(fields.task_time);  // the order within a second
  record.add("taskTime", time_text);
  const std::size_t time_at = record.size() - time_text.size();
  record.add("taskTaken", "false");
  add_work(fields, record);
  NewRecord made{fields.id, record.take()};
  if (fields.made_time) made.made_time = {fields.task_time, time_at};
  return checked(std::move(made));
}

Result<NewRecord> make_record(const NewTask& task, WallTime now, TaskIds& ids) {
  RecordFields fields;
  fields.id = task.id.empty() ? ids.next(now) : task.id;
  if (const std::string fault = id_fault(fields.id); !fault.empty()) {
    return refuse("id", '"' + excerpt(fields.id) + "\" " + fault);
  }
  for (const auto& [name, text] :
       {std::pair{"type", &task.type}, {"serial_key", &task.serial_key}}) {
    if (!is_utf8(*text)) return refuse(name, "expected UTF-8, got \"" + excerpt(*text) + '"');
  }
  fields.type = task.type;
  fields.task_time = task.time.value_or(now);
  fields.made_time = !task.time;
  auto parameters = checked_text(task.parameters);
  if (!parameters) return refuse("parameters", parameters.error().message);
  fields.para = *std::move(parameters);
  fields.execute_at = task.execute_at;
  fields.expire_at = task.expire_at;
  if (!task.serial_key.empty()) fields.serial_key = task.serial_key;
  fields.max_attempts = task.max_attempts;
  if (task.timeout) {
    if (*task.timeout < Duration::zero()) {
      return refuse("timeout", "expected zero or more, got " + format_duration(*task.timeout));
    }
    // Round up, since zero means no timeout.
    fields.timeout = format_duration(std::chrono::ceil<std::chrono::microseconds>(*task.timeout));
  }
  return make_record(fields);
}

Result<NewRecord> complete_record(std::string_view text, const std::string& type, WallTime now,
                                  TaskIds& ids) {
  if (auto object = check_object(text); !object) return tl::unexpected(object.error());
  const std::string plain = wire::unstamped_record(text);
  LICTOR_TRY(const auto members, split_object(plain));
  const auto has = [&](std::string_view name) {
    return std::any_of(members.begin(), members.end(), [&](const JsonMember& member) {
      return member.name == name && member.value_text != "null";
    });
  };
  NewRecord task;
  LICTOR_TRY(task.id, id_among(members));
  const bool without_id = task.id.empty(), without_time = !has("taskTime");
  const bool without_type = !type.empty() && !has("taskType");

  // Added members come first.
  ObjectText record;
  if (without_id) {
    task.id = ids.next(now);
    record.add("taskId", json_quoted(task.id));
  }
  if (without_time) {
    record.add("taskTime", ms_text(now));
    task.made_time = {now, record.size() - ms_text(now).size()};
  }
  if (without_type) record.add("taskType", json_quoted(type));
  for (const JsonMember& member : members) {
    const bool is_replaced = (without_id && member.name == "taskId") ||
                             (without_time && member.name == "taskTime") ||
                             (without_type && member.name == "taskType");
    if (!is_replaced) record.add_raw(member.name_text, member.value_text);
  }
  task.record = record.take();
  return checked(std::move(task));
}

}  // namespace lictor::client
