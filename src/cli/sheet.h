#pragma once

#include <string>

#include "base/printable.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "wire/json_text.h"

namespace lictor::cli {

/// What "show" prints of one thing: a line a field, and blocks below them.
class Sheet {
 public:
  void line(const std::string& name, const std::string& value, Style style = Style::kPlain) {
    if (value.empty()) return;
    page.add(name + std::string(12 - name.size(), ' '));
    page.add(printable(value), style);
    page.add("\n");
  }
  void block(const std::string& title, const std::string& text) {
    page.add("\n");
    page.add(title, Style::kBold);
    page.add('\n' + text + (text.ends_with('\n') ? "" : "\n"));
  }

  Page page;
};

/// The value of a key, for a block.
[[nodiscard]] inline std::string record_text(const std::string& record) {
  if (wire::parse_json(record)) return indented_json(record);
  return record.empty() ? "(no bytes)" : record;
}

}  // namespace lictor::cli
