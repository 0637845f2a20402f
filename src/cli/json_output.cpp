#include "cli/json_output.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/time_text.h"

namespace lictor::cli {

std::string json_document(const nlohmann::ordered_json& value) {
  using Json = nlohmann::ordered_json;
  return printable_json(value.dump(2, ' ', false, Json::error_handler_t::replace)) + '\n';
}

std::string indented_json(std::string_view text) {
  std::string out;
  std::size_t depth = 0;
  bool quoted = false;
  const auto new_line = [&] { out += '\n' + std::string(2 * depth, ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      if (c == '"') quoted = false;
      continue;
    }
    switch (c) {
      case ' ':
      case '\t':
      case '\r':
      case '\n':
        break;
      case '{':
      case '[': {
        out += c;
        const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
        if (next != std::string_view::npos && (text[next] == '}' || text[next] == ']')) {
          out += text[next];
          i = next;
        } else {
          ++depth;
          new_line();
        }
        break;
      }
      case '}':
      case ']':
        if (depth > 0) --depth;
        new_line();
        out += c;
        break;
      case ',':
        out += c;
        new_line();
        break;
      case ':':
        out += ": ";
        break;
      default:
        quoted = c == '"';
        out += c;
    }
  }
  return out;
}

namespace {

using nlohmann::ordered_json;

ordered_json time_or_null(const std::optional<WallTime>& time) {
  return time ? ordered_json(format_rfc3339(*time)) : ordered_json{};
}

}  // namespace

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json{} : ordered_json(text);
}

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
