#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lictor/result.h"

namespace lictor::exec {

/// The programs that the warden runs now, in memory that it shares with the daemon. Should the
/// warden die, the daemon finds by them what they have left (ProcessHost); until then they need not
/// be told to anyone, which would wake the daemon once more for each job. Made before the warden is
/// forked; the warden's one thread writes, any thread of the daemon reads.
class ProgramTable {
 public:
  /// More than a host can run. Only the pages in use take memory.
  static constexpr std::size_t kPlaces = 65536;
  using Place = std::uint32_t;

  /// Errors: kFailed, when the system gives no shared memory.
  [[nodiscard]] static Result<ProgramTable> create();

  ProgramTable(ProgramTable&& other) noexcept;
  ProgramTable& operator=(ProgramTable&&) = delete;
  ~ProgramTable();

  /// Nothing when it is full.
  [[nodiscard]] std::optional<Place> take_place();
  void set(Place place, pid_t pid) noexcept { programs_[place].store(pid); }
  /// Empties it, for another to take.
  void give_back(Place place);

  [[nodiscard]] std::vector<pid_t> list() const;

 private:
  // Two processes share them: an atomic that is a lock in disguise would lock nothing.
  static_assert(std::atomic<pid_t>::is_always_lock_free);

  explicit ProgramTable(std::atomic<pid_t>* programs) : programs_(programs) {}

  std::atomic<pid_t>* programs_;
  std::vector<Place> free_;  // of those below unused_
  Place unused_ = 0;
};

}  // namespace lictor::exec
