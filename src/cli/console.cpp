#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <utility>

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
  constexpr std::size_t kBuffer = 64 * 1024;  // so that what is flushed in time are whole lines
  const Terminal out = detect_terminal(stdout);
  if (!out.is_terminal) std::setvbuf(stdout, nullptr, _IOFBF, kBuffer);
  return {stdout, stderr, out, detect_terminal(stderr)};
}

std::string painted(std::string_view text, Style style, bool color) {
  if (!color || style == Style::kPlain) return std::string{text};
  return std::string{escape_of(style)} + std::string{text} + "\x1b[0m";
}

std::string Console::paint(std::string_view text, Style style) const {
  return painted(text, style, out_terminal_.color);
}

void Console::print(std::string_view text) {
  if (out_terminal_.is_terminal) end_progress();
  if (error_number_ != 0 || text.empty()) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), out_) != text.size()) {
    error_number_ = errno == 0 ? EIO : errno;
  }
}

void Console::flush_out() {
  errno = 0;
  if (std::fflush(out_) != 0 && error_number_ == 0) error_number_ = errno == 0 ? EIO : errno;
}

void Console::note(std::string_view line) {
  end_progress();
  flush_out();  // where both go to one place, what was said first stands first
  const std::string whole = std::string{line} + '\n';
  std::fwrite(whole.data(), 1, whole.size(), err_);
  std::fflush(err_);
}

void Console::complain(std::string_view message) {
  note(painted("lictor:", Style::kRed, err_terminal_.color) + ' ' + std::string{message});
}

std::optional<bool> Console::confirm(std::string_view question) {
  if (!err_terminal_.is_terminal || ::isatty(STDIN_FILENO) != 1) return std::nullopt;
  end_progress();
  flush_out();
  std::fputs((std::string{question} + " [y/N] ").c_str(), err_);
  std::fflush(err_);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void Console::progress(std::string_view line) {
  if (!err_terminal_.is_terminal) return;
  const std::size_t room = err_terminal_.width > 1 ? err_terminal_.width - 1 : 1;
  const std::string text = "\r\x1b[K" + fitted(line, room);
  std::fwrite(text.data(), 1, text.size(), err_);
  std::fflush(err_);
  progress_shown_ = true;
}

void Console::end_progress() {
  if (!progress_shown_) return;
  std::fputs("\r\x1b[K", err_);
  std::fflush(err_);
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
