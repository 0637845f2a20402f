#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace lictor::exec {

/// The file of an attempt's output: `<directory>/<queue>/<task>.<attempt>.<token>.log`. In queue and
/// task each byte but letters, digits, '_', '-' and '.' is written as %XX, and a leading dot too. A
/// long name is cut and ends in '~' and a hash of the whole name.
[[nodiscard]] std::string output_log_path(const std::string& directory, std::string_view queue,
                                          std::string_view task_id, std::uint32_t attempt,
                                          std::uint64_t token);

/// The common start of the paths of a task's attempts: `<directory>/<queue>/<task>.`
[[nodiscard]] std::string output_log_stem(const std::string& directory, std::string_view queue,
                                          std::string_view task_id);

/// A program's output: the first bytes go to a file, made with the first byte, and the last bytes
/// stay in memory. A file that cannot be written loses the log but does not fail the job.
class OutputLog {
 public:
  static constexpr std::size_t kTailBytes = 4096;

  /// Without a `path` only the tail is kept. The file gets at most `cap` bytes, then a line that
  /// says how many were left out.
  OutputLog(std::string path, std::size_t cap);

  /// Returns a warning after the first error; else "".
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

/// The paths of the output logs of running attempts, also before their first output. Thread-safe.
class ActiveLogs {
 public:
  void add(const std::string& path) {
    const std::lock_guard lock{mutex_};
    paths_.insert(path);
  }
  void remove(const std::string& path) {
    const std::lock_guard lock{mutex_};
    paths_.erase(path);
  }
  [[nodiscard]] bool contains(std::string_view path) const {
    const std::lock_guard lock{mutex_};
    return paths_.find(path) != paths_.end();
  }
  [[nodiscard]] std::vector<std::string> below(std::string_view prefix) const {
    const std::lock_guard lock{mutex_};
    std::vector<std::string> found;
    for (auto it = paths_.lower_bound(prefix); it != paths_.end() && it->starts_with(prefix);
         ++it) {
      found.push_back(*it);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> paths_;
};

}  // namespace lictor::exec
