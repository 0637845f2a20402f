#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The last line of `output` that is not blank, at most 200 bytes; empty: there is none. If the
/// program ended with a stack trace of Node, Go or Java, the error above the trace.
[[nodiscard]] std::string last_line(std::string_view output);

/// The file of an attempt's output: `<directory>/<queue>/<task>.<attempt>.<token>.log`. In queue
/// and task each byte but letters, digits, '_', '-' and '.' is written as %XX, and a leading dot
/// too. A long name is cut and ends in '~' and a hash of the whole name.
[[nodiscard]] std::string output_log_path(const std::string& directory, std::string_view queue,
                                          std::string_view key_id, std::uint32_t attempt,
                                          std::uint64_t token);

/// The common start of the paths of a task's attempts: `<directory>/<queue>/<task>.`
[[nodiscard]] std::string output_log_stem(const std::string& directory, std::string_view queue,
                                          std::string_view key_id);

/// Whether an output log was written.
struct LogOutcome {
  std::uint64_t bytes = 0;  ///< written to the file
  std::string error{};  ///< why some are missing, as "cannot write <path>: No space left on device"
};

/// A program's output: the first bytes go to a file, made with the first byte, and the last bytes
/// stay in memory until the end. A file that cannot be written loses the log but does not fail the
/// job.
///
///   the output:  |--- first bytes: to the file at once ---|  left out  |--- last bytes ---|
///                                                            (counted)   in memory, to the file
///                                                                        by finish()
class OutputLog {
 public:
  static constexpr std::size_t kTailBytes = 4096;

  /// Without a `path` only the tail is kept. The file gets at most `cap` bytes: the start and the
  /// end of a longer output, and between them a line that says how many bytes were left out.
  OutputLog(std::string path, std::size_t cap);

  /// Returns a warning after the first error, and "" otherwise.
  [[nodiscard]] std::string write(std::string_view bytes);
  /// Writes the end and closes the file. Returns a warning, or "".
  [[nodiscard]] std::string finish();

  /// The last bytes, valid UTF-8, kTailBytes at most.
  [[nodiscard]] std::string tail() const;

  /// Whether the file was written.
  [[nodiscard]] const LogOutcome& outcome() const { return outcome_; }

 private:
  [[nodiscard]] std::string append(std::string_view bytes);
  [[nodiscard]] bool open();
  [[nodiscard]] std::string give_up(const char* what);

  std::string path_;
  std::size_t end_;   // the part of the cap for the last bytes
  std::size_t room_;  // the room left for the first bytes
  std::uint64_t after_head_ = 0;
  UniqueFd file_;
  std::string tail_;
  LogOutcome outcome_;
};

/// The output logs of this process's attempts: the running ones, also before their first output,
/// and the ones that could not be written. Thread-safe.
class ActiveLogs {
 public:
  void add(const std::string& path) {
    const std::lock_guard lock{mutex_};
    paths_.insert(path);
  }
  void remove(const std::string& path, const LogOutcome& outcome = {});
  /// Waits until ended attempts have written `bytes` since the last call, counting at least 4 kB
  /// for each, or until the time is over.
  void wait_for_growth(const std::stop_token& stop, std::uint64_t bytes, Duration at_most);
  /// The rest of the attempt's output cannot be written.
  void lose(const std::string& path, const std::string& error);

  /// The logs with this start that were not written as a whole, and why; the newest 64 of all.
  [[nodiscard]] std::map<std::string, std::string> errors_below(std::string_view prefix) const;
  /// Why the newest log with any output could not be written; empty: it was written.
  [[nodiscard]] std::string newest_error() const;

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
  static constexpr std::size_t kErrorsKept = 64;

  mutable std::mutex mutex_;
  std::condition_variable_any grown_;
  std::uint64_t ended_bytes_ = 0;                  // of ended attempts
  std::multiset<std::string, std::less<>> paths_;  // a worker's attempt may have two for a moment
  std::deque<std::pair<std::string, std::string>> errors_;  // path and error, the newest last
  std::string newest_error_;
};

/// The output log of one attempt.
struct StoredLog {
  std::string path;
  std::uint32_t attempt = 0;
  std::uint64_t token = 0;
  std::uint64_t size = 0;  ///< bytes; 0: also before the first output of a running attempt
  WallTime modified{};     ///< the epoch: there is no file yet
  bool running = false;
  std::string error{};  ///< why not all output could be kept; empty: it was kept, or unknown
};

/// The logs of a task below `directory`, oldest first: by fencing token, which never decreases,
/// while a new task under an old id begins again with attempt 1. `active`, if not null, says which
/// attempts run. Blocks on the file system. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::vector<StoredLog>> stored_logs(const std::string& directory,
                                                         std::string_view queue,
                                                         std::string_view key_id,
                                                         const ActiveLogs* active);

/// Up to `limit` bytes (not 0) of the log from `offset` on; "" at its end, and if there is no file.
/// Follows no symbolic link. Errors: kPermissionDenied, kFailed.
[[nodiscard]] Result<std::string> read_log(const std::string& path, std::uint64_t offset,
                                           std::size_t limit);

/// Limits for all output logs below a directory.
struct LogLimits {
  Duration max_age = std::chrono::hours{720};
  std::uint64_t max_bytes = 1ULL << 30U;  ///< on the disk

  friend bool operator==(const LogLimits&, const LogLimits&) = default;
};

struct Pruned {
  std::size_t removed = 0;
  std::uint64_t removed_bytes = 0;  ///< on the disk, at least 4 kB a file
  std::size_t kept = 0;
  std::uint64_t kept_bytes = 0;
  std::string error;  ///< the first one; empty: none
};

/// Removes from `<directory>/<queue>/` the logs that are older than the limit, then the oldest ones
/// until the rest fits. Keeps the logs of running attempts and all files but regular ones called
/// *.log. Follows no symbolic links. Blocks on the file system.
[[nodiscard]] Pruned prune_logs(const std::string& directory, const LogLimits& limits, WallTime now,
                                const ActiveLogs& active);

/// A thread that prunes at the start, every ten minutes, and when a sixteenth of `limits.max_bytes`
/// (at least 1 MiB) was written since. It ends when it is asked to stop. `on_pruned` runs on it
/// after each pass.
[[nodiscard]] std::jthread start_log_pruner(const std::string& directory, LogLimits limits,
                                            const std::shared_ptr<ActiveLogs>& active,
                                            const std::function<void(const Pruned&)>& on_pruned);

}  // namespace lictor::exec
