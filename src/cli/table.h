#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"

namespace lictor::cli {

struct Cell {
  std::string text;  ///< made printable by the table
  Style style = Style::kPlain;
};

/// Rows under titles, aligned to the left. A column that is empty in every row is left out.
class Table {
 public:
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  void add_row(std::vector<Cell> cells);

  /// For a terminal of `width` columns (0: no limit) the last column is cut, since it holds the
  /// longest texts, and before it the first one, in the middle.
  [[nodiscard]] Page render(std::size_t width) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace lictor::cli
