#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/printable.h"
#include "package/manual.h"

namespace lictor::package {
namespace {

using Row = std::vector<std::string>;
using Widths = std::vector<std::size_t>;

constexpr std::size_t kGap = 2;
// A longer word is cut rather than given a column of its own width.
constexpr std::size_t kLongestWord = 26;
// Narrower columns are hard to read: a word or two a line.
constexpr std::size_t kNarrow = 12;

std::size_t sum(const Widths& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + kGap * (widths.size() - 1);
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, columns(text)), ' ');
}

// Widths that fit into `width`; empty: there are none that can be read.
Widths widths_of(const std::vector<Row>& rows, std::size_t width) {
  const std::size_t count = rows.front().size();
  Widths natural(count, 1);
  Widths least(count, 1);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < count; ++i) {
      natural[i] = std::max(natural[i], columns(row[i]));
      std::istringstream words{row[i]};
      for (std::string word; words >> word;) {
        least[i] = std::max(least[i], std::min(columns(word), kLongestWord));
      }
    }
  }
  if (sum(natural) <= width) return natural;
  for (std::size_t i = 0; i < count; ++i) {
    least[i] = std::max(least[i], std::min(natural[i], kNarrow));
  }
  if (sum(least) > width) return {};
  // What is left goes to the column that lacks the most, a column at a time.
  Widths widths = least;
  for (std::size_t left = width - sum(least); left != 0; --left) {
    std::size_t neediest = 0;
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double lines = static_cast<double>(natural[i]) / static_cast<double>(widths[i]);
      if (widths[i] < natural[i] && lines > most) {
        most = lines;
        neediest = i;
      }
    }
    if (most == 0) break;
    ++widths[neediest];
  }
  return widths;
}

// Each row as a paragraph: its first cell, then the others with their heads.
std::string as_paragraphs(const std::vector<Row>& rows, std::size_t width) {
  std::string text;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (const std::string& line : wrapped(rows[i].front(), width)) text += line + '\n';
    for (std::size_t j = 1; j < rows[i].size(); ++j) {
      if (rows[i][j].empty()) continue;
      const std::string head = rows.front()[j].empty() ? "" : rows.front()[j] + ": ";
      std::string indent = "    ";
      for (const std::string& line : wrapped(head + rows[i][j], width - 6)) {
        text += indent + line + '\n';
        indent = "      ";
      }
    }
  }
  return text;
}

}  // namespace

std::string text_table(const std::vector<Row>& all, std::size_t width) {
  std::vector<Row> rows = all;
  for (Row& row : rows) row.resize(rows.front().size());
  const Widths widths = widths_of(rows, width);
  if (widths.empty()) return as_paragraphs(rows, width);
  std::string text;
  for (const Row& row : rows) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(wrapped(row[i], widths[i]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string out;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        out += padded(line < cells[i].size() ? cells[i][line] : "", widths[i] + kGap);
      }
      text += out.erase(out.find_last_not_of(' ') + 1) + '\n';
    }
    if (&row == &rows.front()) text += std::string(sum(widths), '-') + '\n';
  }
  return text;
}

}  // namespace lictor::package
