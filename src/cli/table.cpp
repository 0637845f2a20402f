#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace lictor::cli {
namespace {

constexpr std::size_t kGap = 2;
// Below it a column says nothing; the line may wrap.
constexpr std::size_t kLeastFirst = 12, kLeastLast = 16;

}  // namespace

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(titles_.size());
  for (Cell& cell : cells) cell.text = printable(cell.text);
  rows_.push_back(std::move(cells));
}

Page Table::render(std::size_t width) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths(titles_.size());
  for (std::size_t i = 0; i < titles_.size(); ++i) {
    for (const auto& row : rows_) widths[i] = std::max(widths[i], columns(row[i].text));
    if (widths[i] == 0) continue;
    widths[i] = std::max(widths[i], columns(titles_[i]));
    shown.push_back(i);
  }
  if (shown.empty()) return {};

  // The first and the last column get what the others leave.
  std::size_t left = width;
  for (const std::size_t i : shown) {
    const std::size_t taken = i == shown.front() ? 0 : i == shown.back() ? kGap : widths[i] + kGap;
    left -= std::min(left, taken);
  }
  const auto limit = [&](std::size_t& column, std::size_t least, std::size_t reserved) {
    if (width == 0) return;
    column = std::min(column, std::max(left - std::min(left, reserved), least));
    left -= std::min(left, column);
  };
  std::size_t& last = widths[shown.back()];
  if (shown.size() > 1) limit(widths[shown.front()], kLeastFirst, std::min(last, kLeastLast));
  limit(last, kLeastLast, 0);

  Page page;
  const auto add_line = [&](auto&& cell_of) {
    std::size_t blanks = 0;
    for (const std::size_t i : shown) {
      const Cell cell = cell_of(i);
      const std::string text = i == shown.back()    ? fitted(cell.text, widths[i])
                               : i == shown.front() ? fitted_in_middle(cell.text, widths[i])
                                                    : cell.text;
      if (!text.empty()) {
        page.add(std::string(blanks, ' '));
        page.add(text, cell.style);
        blanks = 0;
      }
      blanks += widths[i] - columns(text) + kGap;
    }
    page.add("\n");
  };
  add_line([&](std::size_t i) { return Cell{titles_[i], Style::kBold}; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) { return row[i]; });
  }
  return page;
}

}  // namespace lictor::cli
