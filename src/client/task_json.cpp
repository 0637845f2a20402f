#include "client/task_json.h"

#include "base/base64.h"
#include "base/text.h"
#include "base/time_text.h"
#include "client/task_info.h"
#include "wire/json_text.h"

namespace lictor::client {
namespace {

using nlohmann::ordered_json;

ordered_json time_or_null(const std::optional<WallTime>& time) {
  return time ? ordered_json(format_rfc3339(*time)) : ordered_json{};
}

}  // namespace

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
  ordered_json told = task_json(task);
  told["session"] = text_or_null(task.session);
  if (task.state == TaskState::kDone) {
    told["result"] =
        wire::parse_json(task.result) ? ordered_json::parse(task.result) : ordered_json{};
  }
  told["output_tail"] = text_or_null(task.output_tail);
  add_value_json(task.record, told);
  return told;
}

void add_value_json(const std::string& value, ordered_json& told) {
  if (wire::parse_json(value)) {
    told["value"] = ordered_json::parse(value);
  } else if (is_utf8(value)) {
    told["raw"] = value;
  } else {
    told["raw_base64"] = base64_encode(value);
  }
}

}  // namespace lictor::client
