#pragma once

#include <span>
#include <string_view>

namespace lictor::manual {

/// A page of the manual.
struct Page {
  std::string_view topic;  ///< "concepts"
  std::string_view text;   ///< src/manual/<topic>.md
  std::string_view html;   ///< made from it when the program is built

  /// The line below its heading: "leader, lease, ..."
  [[nodiscard]] std::string_view summary() const {
    const std::size_t line = text.find("\n\n") + 2;
    return text.substr(line, text.find('\n', line) - line);
  }
};

/// All pages, in the order in which a newcomer would read them.
[[nodiscard]] std::span<const Page> pages();

/// The page that lists them.
[[nodiscard]] std::string_view index_html();

}  // namespace lictor::manual
