#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lictor/time.h"

namespace lictor::cli {

/// Lines of a text, numbered from 1; empty ones are left out, a carriage return at the end of a
/// line and a byte order mark at the start of the text too. Blocks.
class LineReader {
 public:
  /// `fd` is open as long as the reader is there, and not closed by it. `on_pause` is called where
  /// the next line is not there yet, a fifth of a second after the first one since it was called
  /// last; false: the next is not waited for. Nor is it, nor read, once `stop_fd` is readable (-1:
  /// there is none).
  explicit LineReader(int fd, std::function<bool()> on_pause = {}, int stop_fd = -1)
      : fd_(fd), stop_fd_(stop_fd), on_pause_(std::move(on_pause)) {}

  /// The next line, or nothing at the end, or where reading fails.
  [[nodiscard]] std::optional<std::string> next();

  [[nodiscard]] std::size_t number() const { return number_; }
  /// An errno; 0: nothing failed.
  [[nodiscard]] int error() const { return error_; }
  /// By `stop_fd`, before the end.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  [[nodiscard]] std::optional<std::string> next_line();
  void read_more();
  [[nodiscard]] bool wait();

  const int fd_;
  const int stop_fd_;
  const std::function<bool()> on_pause_;
  std::string text_;  // read, and not given out from begin_ on
  std::size_t begin_ = 0;
  std::optional<Instant> first_at_;  // when the first line was given out since the last pause
  bool ended_ = false;
  bool stopped_ = false;
  int error_ = 0;
  std::size_t number_ = 0;
};

}  // namespace lictor::cli
