#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lictor::live {

/// One run of one job, as job_recorder wrote it.
struct Run {
  std::string task;  ///< its id, as job_recorder encodes it
  int attempt = 0;
  std::uint64_t token = 0;
  std::string host;
  pid_t pid = 0;
  std::string version;
  std::size_t input_bytes = 0;
  std::int64_t begin_ns = 0;
  std::int64_t last_ns = 0;  ///< the last that was seen of it
  bool ended = false;        ///< by itself
  pid_t child = 0;
};

/// The notes of the jobs of one queue.
class Journal {
 public:
  explicit Journal(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  /// In the order of their begin.
  [[nodiscard]] std::vector<Run> runs() const;
  [[nodiscard]] std::vector<Run> runs_of(const std::string& task) const;
  /// The run of this attempt, if it has begun.
  [[nodiscard]] std::optional<Run> run(const std::string& task, int attempt = 1) const;
  [[nodiscard]] std::size_t ended() const;
  /// The tasks in the order in which their runs began.
  [[nodiscard]] std::vector<std::string> order() const;

  /// Describes jobs that ran at the same time; by the lock that each held, and by the clock.
  [[nodiscard]] std::vector<std::string> overlaps() const;
  /// Runs of one lane that ran beside each other, with a lower token, or after a later task, in
  /// words; tasks of a lane are in the order of their ids, and none of them fails.
  [[nodiscard]] std::vector<std::string> lane_faults(
      const std::function<int(const Run&)>& lane_of) const;
  /// The number of tasks that have begun.
  [[nodiscard]] std::size_t tasks() const;
  /// Attempts that began with a lower token than one before them.
  [[nodiscard]] std::vector<std::string> falling_tokens() const;

 private:
  std::string file_;
};

}  // namespace lictor::live
