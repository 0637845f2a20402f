#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Which lease a job runs under: an index into the LeaseBoard, one for each queue partition.
using LeaseSlot = std::uint32_t;

/// For a job that needs no lease: nothing ends it but its end, stop(), and the daemon's.
inline constexpr LeaseSlot kNoLease = 0xffffffff;

/// The deadlines of this daemon's leases, in memory that it shares with the warden: to extend a
/// lease is to store a number, so a daemon that hangs extends nothing, and the warden acts on what
/// it finds here. Made before the warden is forked. Thread-safe.
///
/// One slot, as the warden sees it (`d` is its deadline, `g` its grace):
///
///   no lease --extend--> held until d --d passes--> TERM --d + g passes--> KILL --> no lease
///                         ^      |
///                         +extend+
///
/// The KILL goes to every process of the slot's programs, and to the daemon itself if jobs of the
/// slot still run inside it. A lease that is given up keeps its deadline for what still runs.
class LeaseBoard {
 public:
  /// With a slot for each of a daemon's queue partitions. Errors: kFailed, when the system gives no
  /// shared memory.
  [[nodiscard]] static Result<LeaseBoard> create(LeaseSlot slots);

  LeaseBoard(LeaseBoard&& other) noexcept;
  LeaseBoard& operator=(LeaseBoard&&) = delete;
  ~LeaseBoard();

  [[nodiscard]] LeaseSlot slots() const noexcept { return count_; }

  /// The lease of `slot` is trusted until `deadline`; what still runs at `deadline + grace` is
  /// killed. True when the warden has to be told, since it may not look at this slot by itself in
  /// time: ProcessHost::set_lease() does both.
  [[nodiscard]] bool extend(LeaseSlot slot, Instant deadline, Duration grace) noexcept;

  /// The lease is given up: nothing starts under it any more. What still runs may do so until the
  /// deadline, which the warden may not even have read yet.
  void clear(LeaseSlot slot) noexcept;

  /// The last one, also of a lease that was given up; the epoch if there was never one.
  [[nodiscard]] Instant deadline(LeaseSlot slot) const noexcept;
  [[nodiscard]] Duration grace(LeaseSlot slot) const noexcept;

  /// Whether a job may start under `slot` at `now`. Always true for kNoLease.
  [[nodiscard]] bool holds(LeaseSlot slot, Instant now) const noexcept;

  /// Counts a job that is about to run inside the daemon; false, and nothing counted, when the
  /// lease does not hold. After a true one there must be a release(). Under kNoLease always true,
  /// and nothing is counted.
  [[nodiscard]] bool admit(LeaseSlot slot) noexcept;
  void release(LeaseSlot slot) noexcept;

  /// The daemon's loop turns. From the first beat on the warden watches it (hang_watch.h).
  void beat() noexcept;
  /// Nothing is to be concluded from silence until the next beat: the loop has ended, or is at
  /// something that may take long.
  void rest() noexcept;
  /// Another number with each beat; 0: none is to be expected.
  [[nodiscard]] std::uint64_t heartbeat() const noexcept;

  /// Jobs that run inside the daemon, which nobody can kill but with the daemon.
  void add_in_process_job(LeaseSlot slot) noexcept;
  void remove_in_process_job(LeaseSlot slot) noexcept;
  [[nodiscard]] std::uint32_t in_process_jobs(LeaseSlot slot) const noexcept;

 private:
  struct alignas(64) Slot {
    std::atomic<std::int64_t> deadline_ns;
    std::atomic<std::int64_t> grace_ns;
    std::atomic<std::uint32_t> in_process_jobs;
    std::atomic<bool> given_up;
  };
  struct alignas(64) Head {
    std::atomic<std::uint64_t> heartbeat;
  };
  // Two processes share them: an atomic that is a lock in disguise would lock nothing.
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);

  LeaseBoard(Head* head, LeaseSlot count)
      : head_(head), slots_(reinterpret_cast<Slot*>(head + 1)), count_(count) {}
  [[nodiscard]] Slot& at(LeaseSlot slot) const noexcept;

  Head* head_;
  Slot* slots_;              // right behind
  std::uint64_t beats_ = 0;  // the daemon's own
  LeaseSlot count_;
};

}  // namespace lictor::exec
