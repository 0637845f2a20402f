#include "cli/task_json.h"

#include <nlohmann/json.hpp>

#include "base/time_text.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json{} : ordered_json(text);
}

ordered_json time_or_null(const std::optional<WallTime>& time) {
  return time ? ordered_json(format_rfc3339(*time)) : ordered_json{};
}

}  // namespace

ordered_json task_json(const TaskInfo& view) {
  return {{"id", view.id},
          {"key", view.key},
          {"type", text_or_null(view.type)},
          {"state", client::state_name(view.state)},
          {"orphan", view.state == TaskState::kOrphan},
          {"time", time_or_null(view.time)},
          {"due", time_or_null(view.due)},
          {"since", time_or_null(view.since)},
          {"started", time_or_null(view.started)},
          {"took_ms", view.took ? ordered_json(view.took->count() / 1'000'000) : ordered_json{}},
          {"attempt", view.attempt},
          {"lost", view.lost},
          {"node", text_or_null(view.node)},
          {"serial_key", text_or_null(view.serial_key)},
          {"reason", text_or_null(view.reason)},
          {"error", text_or_null(view.error)},
          {"bytes", view.record.size()},
          {"create_index", view.create_index},
          {"modify_index", view.modify_index}};
}

}  // namespace lictor::cli
