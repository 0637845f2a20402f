#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace lictor::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastLast = 16;  // below it a last column says nothing; the line may wrap

std::string padding(std::size_t width, std::string_view text) {
  const std::size_t used = columns(text);
  return std::string(width > used ? width - used + kGap : kGap, ' ');
}

}  // namespace

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(titles_.size());
  for (Cell& cell : cells) cell.text = printable(cell.text);
  rows_.push_back(std::move(cells));
}

std::string Table::render(const Terminal& terminal) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths(titles_.size());
  for (std::size_t i = 0; i < titles_.size(); ++i) {
    for (const auto& row : rows_) widths[i] = std::max(widths[i], columns(row[i].text));
    if (widths[i] == 0) continue;
    widths[i] = std::max(widths[i], columns(titles_[i]));
    shown.push_back(i);
  }
  if (shown.empty()) return {};

  std::size_t before_last = 0;
  for (const std::size_t i : shown) {
    if (i != shown.back()) before_last += widths[i] + kGap;
  }
  std::size_t last_width = 0;  // no limit
  if (terminal.width != 0) {
    last_width =
        terminal.width > before_last + kLeastLast ? terminal.width - before_last : kLeastLast;
  }

  std::string text;
  const auto add_line = [&](auto&& cell_of) {
    for (const std::size_t i : shown) {
      const Cell cell = cell_of(i);
      const bool last = i == shown.back();
      const std::string fit = last ? fitted(cell.text, last_width) : cell.text;
      text += painted(fit, cell.style, terminal.color);
      if (!last) text += padding(widths[i], cell.text);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  add_line([&](std::size_t i) { return Cell{titles_[i], Style::kBold}; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) { return row[i]; });
  }
  return text;
}

}  // namespace lictor::cli
