#pragma once

#include <span>
#include <string_view>

namespace lictor::manual {

/// A page of the manual, made from src/manual/<topic>.md when the program is built.
struct Page {
  std::string_view topic;  ///< "concepts"
  std::string_view text;   ///< its first line: "concepts - leader, lease, ..."
  std::string_view html;
};

/// All pages, in the order in which a newcomer would read them.
[[nodiscard]] std::span<const Page> pages();

/// The page that lists them.
[[nodiscard]] std::string_view index_html();

}  // namespace lictor::manual
