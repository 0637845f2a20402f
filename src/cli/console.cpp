#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "base/errno_text.h"
#include "base/printable.h"
#include "cluster/diagnosis.h"

namespace lictor::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kGap = 2;  // between the columns of a table
// A narrower column of a table says nothing; the line may wrap instead.
constexpr std::size_t kLeastFirst = 12, kLeastLast = 16;

const char* escape_of(Style style) {
  constexpr std::array<const char*, 6> kEscapes{"",         "\x1b[1m",  "\x1b[2m",
                                                "\x1b[32m", "\x1b[33m", "\x1b[31m"};
  return kEscapes[static_cast<std::size_t>(style)];  // in the order of Style
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::string painted(const std::string& text, Style style, bool color) {
  return color && style != Style::kPlain ? escape_of(style) + text + "\x1b[0m" : text;
}

}  // namespace

// TERM=dumb also stands for an editor's shell, which shows escapes as text.
Terminal detect_terminal(std::FILE* stream) {
  Terminal terminal;
  const int fd = ::fileno(stream);
  terminal.is_terminal = ::isatty(fd) == 1;
  if (!terminal.is_terminal) return terminal;
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view{term} == "dumb";
  terminal.moves = !dumb;
  terminal.color = !dumb && !is_set("NO_COLOR");
  terminal.width = kUsualWidth;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) terminal.width = size.ws_col;
  return terminal;
}

Console Console::standard() {
  constexpr std::size_t kBuffer = 64 * 1024;  // large enough that each flush ends with a whole line
  const Terminal out = detect_terminal(stdout);
  if (!out.is_terminal) std::setvbuf(stdout, nullptr, _IOFBF, kBuffer);
  return {stdout, stderr, out, detect_terminal(stderr)};
}

void Page::add(std::string_view text, Style style) {
  parts_.emplace_back(printable(text, true), style);
}

void Page::add(Page other) {
  std::move(other.parts_.begin(), other.parts_.end(), std::back_inserter(parts_));
}

std::string Page::text(bool color) const {
  std::string text;
  for (const auto& [part, style] : parts_) text += painted(part, style, color);
  return text;
}

void Console::print(std::string_view text) { print_bytes(printable(text, true)); }

void Console::print(const Page& page) { print_bytes(page.text(out_terminal_.color)); }

void Console::print_line(std::string_view line) { print_bytes(printable(line) + '\n'); }

std::string Console::suggesting(std::string_view text) const {
  return cluster::with_options(text, queue_, options_);
}

// After the first failure nothing more is written: a reader that closed its pipe ends the output,
// and a full disk would leave a gap in it.
void Console::print_bytes(std::string_view bytes) {
  if (out_terminal_.is_terminal) end_progress();
  if (error_number_ != 0 || bytes.empty()) return;
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), out_) != bytes.size()) {
    error_number_ = errno == 0 ? EIO : errno;
  }
}

void Console::flush_out() {
  errno = 0;
  if (std::fflush(out_) != 0 && error_number_ == 0) error_number_ = errno == 0 ? EIO : errno;
}

void Console::write_err(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), err_);
  std::fflush(err_);
}

void Console::emit(const std::string& text) {
  end_progress();
  flush_out();  // keeps the order where both streams share a terminal
  write_err(text);
}

std::string& program_name() {
  static std::string name{"lictor"};
  return name;
}

// Notes name the queue in the commands that they suggest; print_line() prints data and does not.
void Console::note(std::string_view line) { note_lines(printable(suggesting(line)) + '\n'); }

void Console::note_lines(std::string_view text) { emit(printable(text, true)); }

void Console::report_error(std::string_view message) {
  emit(painted(program_name() + ':', Style::kRed, err_terminal_.color) + ' ' +
       printable(suggesting(message)) + '\n');
}

void Console::report_note(std::string_view message) {
  note(program_name() + ": " + std::string{message});
}

// Both sides must be a terminal: a question that nobody sees would wait without end.
std::optional<bool> Console::confirm(std::string_view question) {
  if (!err_terminal_.is_terminal || ::isatty(STDIN_FILENO) != 1) return std::nullopt;
  emit(printable(question) + " [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void Console::progress(std::string_view line) {
  if (!err_terminal_.moves) return;
  const std::size_t room = err_terminal_.width > 1 ? err_terminal_.width - 1 : 1;
  write_err("\r\x1b[K" + fitted(printable(line), room));
  progress_shown_ = true;
}

void Console::end_progress() {
  if (!progress_shown_) return;
  write_err("\r\x1b[K");
  progress_shown_ = false;
}

Result<void> Console::flush() {
  end_progress();
  return flush_keep_progress();
}

// EPIPE is no error: the reader has what it wanted. Others are reported once.
Result<void> Console::flush_keep_progress() {
  flush_out();
  if (error_number_ == 0 || error_number_ == EPIPE || std::exchange(reported_, true)) return {};
  return fail(ErrorCode::kFailed, "cannot write to standard output: " + errno_text(error_number_) +
                                      "; the output is not complete");
}

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(titles_.size());
  for (Cell& cell : cells) cell.text = printable(cell.text);
  rows_.push_back(std::move(cells));
}

// First the columns get the width of their widest cell, then the first and the last one share what
// the others leave.
Page Table::render(std::size_t width) const {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths(titles_.size());
  for (std::size_t i = 0; i < titles_.size(); ++i) {
    for (const auto& row : rows_) widths[i] = std::max(widths[i], columns(row[i].text));
    if (widths[i] == 0) continue;
    widths[i] = std::max(widths[i], columns(titles_[i]));
    // One long id in a pipe does not pad each of 5,000 rows to its length.
    if (width == 0) widths[i] = std::min(widths[i], kUsualWidth);
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
      const std::string text = width == 0           ? cell.text
                               : i == shown.back()  ? fitted(cell.text, widths[i])
                               : i == shown.front() ? fitted_in_middle(cell.text, widths[i])
                                                    : cell.text;
      if (!text.empty()) {
        page.add(std::string(blanks, ' '));
        page.add(text, cell.style);
        blanks = 0;
      }
      blanks += std::max(widths[i], columns(text)) - columns(text) + kGap;
    }
    page.add("\n");
  };
  add_line([&](std::size_t i) { return Cell{titles_[i], Style::kBold}; });
  for (const auto& row : rows_) {
    add_line([&](std::size_t i) { return row[i]; });
  }
  return page;
}

void Sheet::line(const std::string& name, const std::string& value, Style style) {
  if (value.empty()) return;
  page.add(name + std::string(12 - name.size(), ' '));
  page.add(printable(value), style);
  page.add("\n");
}

void Sheet::block(const std::string& title, const std::string& text) {
  page.add("\n");
  page.add(title, Style::kBold);
  page.add('\n' + text + (text.ends_with('\n') ? "" : "\n"));
}

}  // namespace lictor::cli
