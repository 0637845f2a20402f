#include "cli/json_output.h"

#include <utility>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/command.h"

namespace lictor::cli {

using nlohmann::ordered_json;

std::string json_document(const nlohmann::ordered_json& value) {
  return printable_json(value.dump(2, ' ', false, ordered_json::error_handler_t::replace)) + '\n';
}

void print_json(const Client& client, ordered_json members) {
  ordered_json document{{"queue", client.queue}};
  for (auto& member : members.items()) document[member.key()] = std::move(member.value());
  client.console.print(json_document(document));
}

std::uint64_t count_member(const nlohmann::json& object, const char* name) {
  const nlohmann::json& count = json_member(object, name);
  return count.is_number_unsigned() ? count.get<std::uint64_t>() : 0;
}

std::string duration_text(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return {};
  return format_duration(std::chrono::milliseconds{it->get<std::int64_t>()});
}

// Works on the text, token by token, without a parser and without recursion.
std::string indented_json(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::string out;
  std::size_t depth = 0;
  const auto new_line = [&] { out += '\n' + std::string(2 * depth, ' '); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (kSpace.find(c) != std::string_view::npos) continue;
    if (c == '"') {  // to its end
      const std::size_t begin = i++;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      out += text.substr(begin, i + 1 - begin);
      continue;
    }
    const bool closes = c == '}' || c == ']';
    if (closes && depth > 0) --depth;
    if (closes && !out.ends_with('{') && !out.ends_with('[')) new_line();
    out += c;
    if (c == '{' || c == '[') {
      ++depth;
      const std::size_t next = text.find_first_not_of(kSpace, i + 1);
      if (next != std::string_view::npos && text[next] != '}' && text[next] != ']') new_line();
    }
    if (c == ',') new_line();
    if (c == ':') out += ' ';
  }
  return out;
}

// A record that is no JSON is shown as it is: its reader wants to see the mistake.
std::string record_text(std::string_view record) {
  if (parse_json(record)) return indented_json(record);
  return record.empty() ? "(no bytes)" : std::string{record};
}

}  // namespace lictor::cli
