#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lictor::package {

/// How many columns UTF-8 text takes, each character one.
[[nodiscard]] std::size_t columns_of(const std::string& text);

/// `text` in lines of at most `width` columns, broken at spaces; a word that is longer is cut.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

/// A table as lines of at most `width` columns, its first row the heads. Where the columns don't
/// fit beside each other, each row becomes a paragraph.
[[nodiscard]] std::string text_table(const std::vector<std::vector<std::string>>& rows,
                                     std::size_t width);

}  // namespace lictor::package
