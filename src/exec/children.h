#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "lictor/result.h"

namespace lictor::exec {

/// The environment variable that names a process's warden and attempt, also after the process has
/// left the process group and the session of its attempt.
inline constexpr std::string_view kMark = "LICTOR_RUN";

/// "LICTOR_RUN=<warden>-<attempt>"
[[nodiscard]] std::string mark(pid_t warden, AttemptId attempt);

/// The attempt of `warden` that is named in the initial environment of `pid`. Nothing if there is
/// none, or we may not read it.
[[nodiscard]] std::optional<AttemptId> marked_attempt(pid_t pid, pid_t warden);

/// The children of this process, including zombies and adopted ones. Reads all of /proc.
[[nodiscard]] std::vector<pid_t> scan_children();

/// The same, but fast. For a process of one thread.
class Children {
 public:
  Children();
  [[nodiscard]] std::vector<pid_t> list();

 private:
  UniqueFd list_;  ///< absent in kernels without CONFIG_PROC_CHILDREN
};

/// Kills `pid` and its process group, unless that is ours.
void kill_with_group(pid_t pid);

/// Reaps `pid` if it is a zombie child. False while it lives.
[[nodiscard]] bool reap(pid_t pid);

/// The programs that the warden runs now, in memory shared with the daemon. If the warden dies, the
/// daemon uses them to find the processes that they have left (ProcessHost). A message for each
/// start would wake the daemon once more for each job. Create it before the warden is forked; the
/// warden's one thread writes, any thread of the daemon reads.
class ProgramTable {
 public:
  /// More than a host can run. Only used pages take memory.
  static constexpr std::size_t kPlaces = 65536;
  using Place = std::uint32_t;

  /// Errors: kFailed, no shared memory.
  [[nodiscard]] static Result<ProgramTable> create();

  ProgramTable(ProgramTable&& other) noexcept;
  ProgramTable& operator=(ProgramTable&&) = delete;
  ~ProgramTable();

  /// Nothing: the table is full.
  [[nodiscard]] std::optional<Place> take_place();
  void set(Place place, pid_t pid) noexcept { programs_[place].store(pid); }
  void give_back(Place place);

  [[nodiscard]] std::vector<pid_t> list() const;

 private:
  // A lock inside an atomic would not work between two processes.
  static_assert(std::atomic<pid_t>::is_always_lock_free);

  explicit ProgramTable(std::atomic<pid_t>* programs) : programs_(programs) {}

  std::atomic<pid_t>* programs_;
  std::vector<Place> free_;  // below unused_
  Place unused_ = 0;
};

}  // namespace lictor::exec
