#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lictor::package {

/// A table as lines of at most `width` columns, its first row the heads. Where the columns don't
/// fit beside each other, each row becomes a paragraph.
[[nodiscard]] std::string text_table(const std::vector<std::vector<std::string>>& rows,
                                     std::size_t width);

}  // namespace lictor::package
