#include "cli/new_task.h"

#include <set>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/input.h"
#include "wire/record.h"

namespace lictor::cli {
namespace {

tl::unexpected<Error> refuse(std::string_view where, const std::string& message) {
  return fail(ErrorCode::kInvalid, std::string{where} + ": " + message);
}

// taskPara as JSON: the members of --para-json, then those of --para: NAME=TEXT, NAME:=JSON.
Result<std::string> parameters(const TaskText& text) {
  if (text.para_json && !parse_json(*text.para_json)) {
    return refuse("--para-json", "expected JSON, got " + excerpt(*text.para_json));
  }
  if (text.paras.empty()) return text.para_json.value_or("{}");

  client::ObjectText object;
  std::set<std::string> names;
  if (text.para_json) {
    const auto members = split_object(*text.para_json);
    if (!members) {
      return refuse("--para-json",
                    "expected an object, since --para adds to it, got " + excerpt(*text.para_json));
    }
    for (const JsonMember& member : *members) {
      object.add_raw(member.name_text, member.value_text);
      names.insert(member.name);
    }
  }
  for (const std::string& para : text.paras) {
    const std::size_t equals = para.find('=');
    if (equals == std::string::npos || equals == 0) {
      return refuse("--para", "expected NAME=TEXT or NAME:=JSON, got \"" + excerpt(para) + '"');
    }
    if (!is_utf8(para)) {
      return refuse("--para",
                    "expected UTF-8, got \"" + excerpt(para) + "\"; send bytes as base64");
    }
    const bool is_json = equals > 1 && para[equals - 1] == ':';
    const std::string name = para.substr(0, is_json ? equals - 1 : equals);
    std::string value = para.substr(equals + 1);
    if (is_json && !parse_json(value)) {
      return refuse("--para", "expected JSON after \"" + excerpt(name) + ":=\", got \"" +
                                  excerpt(value) + "\"; text goes after \"=\"");
    }
    if (!names.insert(name).second) {
      return refuse("--para", '"' + excerpt(name) + "\" is given twice");
    }
    object.add(name, is_json ? value : json_quoted(value));
  }
  return object.take();
}

// A moment, given as a time or as a duration from `now`.
Result<std::optional<WallTime>> moment(const char* flag, const std::optional<std::string>& at,
                                       const std::optional<Duration>& in, WallTime now) {
  if (in) return now + std::chrono::ceil<std::chrono::milliseconds>(*in);
  if (!at) return std::nullopt;
  const auto time = time_argument(*at);
  if (!time) return refuse(flag, time.error().message);
  return *time;
}

// The fields that say what to run, and how. `type_flag` gives the type.
Result<client::RecordFields> work(const TaskText& text, const char* type_flag) {
  if (text.type.empty() || !is_utf8(text.type)) {
    return refuse(type_flag,
                  "expected the name of a kind of task, got \"" + excerpt(text.type) + '"');
  }
  client::RecordFields fields;
  fields.type = text.type;
  LICTOR_TRY(fields.para, parameters(text));
  if (text.serial_key && !is_utf8(*text.serial_key)) {
    return refuse("--serial-key", "expected UTF-8, got \"" + excerpt(*text.serial_key) + '"');
  }
  fields.serial_key = text.serial_key;
  fields.max_attempts = text.max_attempts;
  if (text.timeout) fields.timeout = format_duration(*text.timeout);
  if (text.backoff) {
    fields.backoff = "{\"initial\":" + json_quoted(format_duration(*text.backoff)) + '}';
  }
  return fields;
}

}  // namespace

void add_parameters(Arguments& to, TaskText& task) {
  to.texts("--para", task.paras, "A parameter: NAME=TEXT, or NAME:=JSON", "NAME=VALUE");
  to.text("--para-json", task.para_json,
          "The parameters as JSON, from a file, or from standard input", "JSON|@FILE|-");
}

Result<void> read_parameters(TaskText& task) {
  if (task.para_json) {
    LICTOR_TRY(task.para_json, read_argument("--para-json", *task.para_json));
  }
  return {};
}

void add_limits(Arguments& to, TaskText& task) {
  to.text("--serial-key", task.serial_key, "Tasks of one key run one after the other", "KEY");
  to.count("--max-attempts", task.max_attempts,
           "A dead letter after N failed attempts (default: the executor's setting)", 1);
  to.duration("--timeout", task.timeout,
              "End an attempt after this (default: the executor's setting)");
  to.duration("--backoff", task.backoff,
              "Wait after the first failure (default: the executor's setting)");
}

// Reads the text as a record's times are read, so a flag and a field take the same forms.
Result<WallTime> time_argument(std::string_view text) {
  if (auto time = wire::read_time(json_quoted(text))) return *time;
  const std::string fault = rfc3339_fault(text);
  return fail(ErrorCode::kInvalid,
              "expected a time with a zone such as 2026-11-21T09:30:00Z or "
              "2026-11-21T10:30:00+01:00, or seconds since the epoch, got \"" +
                  excerpt(text) + '"' + (fault.empty() ? "" : ": " + fault));
}

// Checks what a flag can be blamed for, by the flag's name; make_record() checks the rest.
Result<client::NewRecord> new_task(const TaskText& text, WallTime now, client::TaskIds& ids) {
  LICTOR_TRY(auto fields, work(text, "TYPE"));
  fields.id = text.id ? *text.id : ids.next(now);
  if (const std::string fault = client::id_fault(fields.id); !fault.empty()) {
    return refuse("--id", '"' + excerpt(fields.id) + "\" " + fault);
  }
  LICTOR_TRY(const auto task_time, moment("--task-time", text.task_time, {}, now));
  fields.task_time = task_time.value_or(now);
  LICTOR_TRY(fields.execute_at, moment("--at", text.at, text.in, now));
  LICTOR_TRY(fields.expire_at, moment("--expire-at", text.expire_at, text.expire_in, now));
  return client::make_record(fields);
}

Result<std::string> task_template(const TaskText& text) {
  return work(text, "--type").map(client::make_template);
}

}  // namespace lictor::cli
