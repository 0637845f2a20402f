#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "base/errno_text.h"
#include "base/printable.h"

namespace lictor::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;

const char* escape_of(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
    case Style::kRed:
      return "\x1b[31m";
  }
  return "";
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::string painted(const std::string& text, Style style, bool color) {
  return color && style != Style::kPlain ? escape_of(style) + text + "\x1b[0m" : text;
}

}  // namespace

Terminal detect_terminal(std::FILE* stream) {
  Terminal terminal;
  const int fd = ::fileno(stream);
  terminal.is_terminal = ::isatty(fd) == 1;
  if (!terminal.is_terminal) return terminal;
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view{term} == "dumb";
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

std::string Page::text(bool color) const {
  std::string text;
  for (const auto& [part, style] : parts_) text += painted(part, style, color);
  return text;
}

void Console::print(std::string_view text) { print_bytes(printable(text, true)); }

void Console::print(const Page& page) { print_bytes(page.text(out_terminal_.color)); }

void Console::print_line(std::string_view line) { print_bytes(printable(line) + '\n'); }

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

void Console::note(std::string_view line) { note_lines(printable(line) + '\n'); }

void Console::note_lines(std::string_view text) {
  end_progress();
  flush_out();  // keeps the order where both streams share a terminal
  write_err(printable(text, true));
}

void Console::complain(std::string_view message) {
  end_progress();
  flush_out();
  write_err(painted("lictor:", Style::kRed, err_terminal_.color) + ' ' + printable(message) + '\n');
}

std::optional<bool> Console::confirm(std::string_view question) {
  if (!err_terminal_.is_terminal || ::isatty(STDIN_FILENO) != 1) return std::nullopt;
  end_progress();
  flush_out();
  write_err(printable(question) + " [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void Console::progress(std::string_view line) {
  if (!err_terminal_.is_terminal) return;
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
  return hand_out();
}

Result<void> Console::hand_out() {
  flush_out();
  if (error_number_ == 0 || error_number_ == EPIPE || std::exchange(told_, true)) return {};
  return fail(ErrorCode::kFailed, "cannot write to standard output: " + errno_text(error_number_) +
                                      "; the output is not complete");
}

}  // namespace lictor::cli
