#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace lictor::exec {

/// Where an attempt's output is kept: `<directory>/<queue>/<task>.<attempt>.<token>.log`. In queue
/// and task all but letters, digits, '_', '-' and '.' is written %XX, a leading dot too, and a name
/// that is too long is cut and ends in '~' and a hash of the whole.
[[nodiscard]] std::string output_log_path(const std::string& directory, std::string_view queue,
                                          std::string_view task_id, std::uint32_t attempt,
                                          std::uint64_t token);

/// What the paths of all attempts of a task begin with: `<directory>/<queue>/<task>.`
[[nodiscard]] std::string output_log_stem(const std::string& directory, std::string_view queue,
                                          std::string_view task_id);

/// What a program prints: its first bytes go to a file, which is made when there is a first byte,
/// and its last ones are remembered. A file that cannot be written loses the log, never the job.
class OutputLog {
 public:
  static constexpr std::size_t kTailBytes = 4096;

  /// With an empty `path` only the tail is kept. Of more than `cap` bytes the file gets `cap` and a
  /// line that says how many were left out.
  OutputLog(std::string path, std::size_t cap);

  /// Returns what went wrong, for a warning, the first time that something does; else "".
  [[nodiscard]] std::string write(std::string_view bytes);
  [[nodiscard]] std::string finish();

  /// The last bytes, valid UTF-8, kTailBytes at most.
  [[nodiscard]] std::string tail() const;

 private:
  [[nodiscard]] std::string append(std::string_view bytes);
  [[nodiscard]] bool open();
  [[nodiscard]] std::string give_up(const char* what);

  std::string path_;
  std::size_t room_;
  std::uint64_t left_out_ = 0;
  UniqueFd file_;
  std::string tail_;
};

}  // namespace lictor::exec
