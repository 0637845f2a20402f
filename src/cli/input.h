#pragma once

// Reads the input of a command: an argument that names a file, and lines that may come slowly.
//
// LineReader lets a caller gather lines, and tells it when to stop gathering: 200 ms after the
// first line since the last such call, when it has to wait for more. So a pipe that pauses holds
// nothing up, and a file is read in large pieces.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::cli {

/// The value of an argument: the content of FILE for "@FILE", of standard input for "-", else the
/// argument itself. Blocks. Errors: kInvalid, naming `flag` and the file.
[[nodiscard]] Result<std::string> read_argument(const std::string& flag,
                                                const std::string& argument);

/// Reads lines, numbered from 1. Skips blank lines, a carriage return at the end of a line, and a
/// byte order mark. Blocks.
class LineReader {
 public:
  /// `fd` must stay open while the reader lives; the reader doesn't close it. While it waits for a
  /// line, it calls `on_pause` 200 ms after the first line since the last call; false ends the
  /// input. So does a readable `stop_fd` (-1: none).
  explicit LineReader(int fd, std::function<bool()> on_pause = {}, int stop_fd = -1)
      : fd_(fd), stop_fd_(stop_fd), on_pause_(std::move(on_pause)) {}

  /// std::nullopt at the end, or if reading fails.
  [[nodiscard]] std::optional<std::string> next();

  [[nodiscard]] std::size_t number() const { return number_; }
  /// An errno; 0: nothing failed.
  [[nodiscard]] int error() const { return error_; }
  /// `stop_fd` ended the input.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  [[nodiscard]] std::optional<std::string> next_line();
  void read_more();
  [[nodiscard]] bool wait();

  const int fd_;
  const int stop_fd_;
  const std::function<bool()> on_pause_;
  std::string text_;  // read; returned up to begin_
  std::size_t begin_ = 0;
  std::optional<Instant> first_at_;  // when the first line since the last pause was returned
  bool ended_ = false;
  bool stopped_ = false;
  int error_ = 0;
  std::size_t number_ = 0;
};

}  // namespace lictor::cli
