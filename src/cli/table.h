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

  /// On a terminal the lines are cut to its width: in the last column first, since it holds the
  /// longest texts.
  [[nodiscard]] std::string render(const Terminal& terminal) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace lictor::cli
