#include "cli/new_task.h"

#include <algorithm>
#include <set>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time_text.h"
#include "core/options.h"
#include "wire/json_text.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::cli {
namespace {

using wire::json_quoted;

// What the daemon must be able to add to a record when it claims it.
constexpr std::size_t kClaimBytes = 1'000;

tl::unexpected<Error> refuse(std::string_view where, const std::string& message) {
  return fail(ErrorCode::kInvalid, std::string{where} + ": " + message);
}

// A JSON object that grows.
class ObjectText {
 public:
  void add(std::string_view name, std::string_view json) { add_raw(json_quoted(name), json); }
  void add_raw(std::string_view quoted_name, std::string_view json) {
    text_ += text_.size() > 1 ? "," : "";
    text_ += quoted_name;
    text_ += ':';
    text_ += json;
  }
  [[nodiscard]] std::string take() { return std::move(text_) + '}'; }

 private:
  std::string text_{'{'};
};

std::string ms_text(WallTime time) { return std::to_string(time.time_since_epoch().count()); }

// What the daemon would say of the record.
Result<void> check_record(const std::string& id, const std::string& record) {
  if (const std::size_t most = core::QueueOptions{}.max_value_bytes - kClaimBytes;
      record.size() > most) {
    return fail(ErrorCode::kTooLarge, "expected a record of at most " + std::to_string(most) +
                                          " bytes, got " + std::to_string(record.size()) +
                                          "; put what is large elsewhere and name it");
  }
  const wire::Layout layout = wire::Layout::under("", "q");
  const auto read = wire::read_record(layout, {layout.task_key(id), record, {}, 0, 0, 0});
  if (const auto* bad = std::get_if<core::BadRecord>(&read)) {
    return fail(ErrorCode::kInvalid, bad->error);
  }
  return {};
}

// taskPara as JSON: the members of --para-json, then those of --para, all of them strings.
Result<std::string> parameters(const TaskText& text) {
  if (text.para_json && !wire::parse_json(*text.para_json)) {
    return refuse("--para-json", "expected JSON, got " + excerpt(*text.para_json));
  }
  if (text.paras.empty()) return text.para_json.value_or("{}");

  ObjectText object;
  std::set<std::string> names;
  if (text.para_json) {
    const auto members = wire::split_object(*text.para_json);
    if (!members) {
      return refuse("--para-json",
                    "expected an object, since --para adds to it, got " + excerpt(*text.para_json));
    }
    for (const wire::Member& member : *members) {
      object.add_raw(member.name_text, member.value_text);
      names.insert(member.name);
    }
  }
  for (const std::string& para : text.paras) {
    const std::size_t equals = para.find('=');
    if (equals == std::string::npos || equals == 0) {
      return refuse("--para", "expected NAME=VALUE, got \"" + excerpt(para) + '"');
    }
    if (!is_utf8(para)) {
      return refuse("--para",
                    "expected UTF-8, got \"" + excerpt(para) + "\"; send bytes as base64");
    }
    const std::string name = para.substr(0, equals);
    if (!names.insert(name).second) {
      return refuse("--para", '"' + excerpt(name) + "\" is given twice");
    }
    object.add(name, json_quoted(para.substr(equals + 1)));
  }
  return object.take();
}

Result<std::optional<WallTime>> execute_at(const TaskText& text, WallTime now) {
  if (text.at) {
    const auto time = time_argument(*text.at);
    if (!time) return refuse("--at", time.error().message);
    return *time;
  }
  if (text.in) {
    const auto delay = parse_duration(*text.in);
    if (!delay) {
      return refuse("--in", R"(expected a duration such as "90s", "10m" or "2h", got ")" +
                                excerpt(*text.in) + '"');
    }
    return now + std::chrono::ceil<std::chrono::milliseconds>(*delay);
  }
  return std::nullopt;
}

}  // namespace

Result<WallTime> time_argument(std::string_view text) {
  if (auto time = wire::read_time(json_quoted(text), true)) return *time;
  return fail(ErrorCode::kInvalid,
              "expected a time with a zone such as 2026-11-21T09:30:00Z or "
              "2026-11-21T10:30:00+01:00, or seconds since the epoch, got \"" +
                  excerpt(text) + '"');
}

Result<NewTask> new_task(const TaskText& text, WallTime now, TaskIds& ids) {
  if (text.type.empty() || !is_utf8(text.type)) {
    return refuse("TYPE", "expected the name of a kind of task, got \"" + excerpt(text.type) + '"');
  }
  NewTask task;
  task.id = text.id ? *text.id : ids.next(now);
  if (const std::string fault = task_id_fault(task.id); !fault.empty()) {
    return refuse("--id", '"' + excerpt(task.id) + "\" " + fault);
  }
  WallTime task_time = now;
  if (text.task_time) {
    const auto time = time_argument(*text.task_time);
    if (!time) return refuse("--task-time", time.error().message);
    task_time = *time;
  }
  const auto para = parameters(text);
  if (!para) return tl::unexpected(para.error());
  const auto at = execute_at(text, now);
  if (!at) return tl::unexpected(at.error());
  if (text.serial_key && !is_utf8(*text.serial_key)) {
    return refuse("--serial-key", "expected UTF-8, got \"" + excerpt(*text.serial_key) + '"');
  }
  if (text.timeout && !parse_duration(*text.timeout)) {
    return refuse("--timeout", R"(expected a duration such as "90s", "10m" or "2h", got ")" +
                                   excerpt(*text.timeout) + '"');
  }

  ObjectText record;
  record.add("taskId", json_quoted(task.id));
  record.add("taskTime", ms_text(task_time));  // milliseconds: keeps the order within a second
  record.add("taskTaken", "false");
  record.add("taskType", json_quoted(text.type));
  record.add("taskPara", *para);
  if (*at) record.add("executeAt", json_quoted(format_rfc3339(**at)));
  if (text.serial_key) record.add("serialKey", json_quoted(*text.serial_key));
  if (text.max_attempts) record.add("maxAttempts", std::to_string(*text.max_attempts));
  if (text.timeout) record.add("timeout", json_quoted(*text.timeout));
  task.record = record.take();
  if (const auto good = check_record(task.id, task.record); !good) {
    return tl::unexpected(good.error());
  }
  return task;
}

Result<NewTask> RecordCompleter::complete(std::string_view text, WallTime now) {
  if (!is_utf8(text)) {
    return fail(ErrorCode::kInvalid, "expected a JSON object, got bytes that are not UTF-8");
  }
  const auto written = wire::split_object(text);
  if (!written) return tl::unexpected(written.error());
  const std::string cleaned = wire::unstamped_record(text);
  const auto members = wire::split_object(cleaned);
  if (!members) return tl::unexpected(members.error());

  const auto has = [&](std::string_view name) {
    return std::any_of(members->begin(), members->end(), [&](const wire::Member& member) {
      return member.name == name && member.value_text != "null";
    });
  };
  // Of a name that is written twice the last one counts, as when the record is read.
  NewTask task;
  for (const wire::Member& member : *members) {
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
  for (const wire::Member& member : *members) {
    const bool replaced =
        member.value_text == "null" && (member.name == "taskId" || member.name == "taskTime" ||
                                        (member.name == "taskType" && !type_.empty()));
    if (!replaced) record.add_raw(member.name_text, member.value_text);
  }
  task.record = record.take();
  if (auto good = check_record(task.id, task.record); !good) {
    return tl::unexpected(std::move(good.error()));
  }
  last_time_ = stamped;
  last_id_ = task.id;
  return task;
}

}  // namespace lictor::cli
