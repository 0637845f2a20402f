#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::exec {

/// The lease that a job runs under: an index into the LeaseBoard, one for each queue partition.
using LeaseSlot = std::uint32_t;

/// For a job without a lease: it ends by itself, by stop(), or with the daemon.
inline constexpr LeaseSlot kNoLease = 0xffffffff;

/// Why a job was not started under a lease.
inline constexpr const char* kLeaseOver = "the lease ran out before it started";

/// The deadlines of this daemon's leases, in memory shared with the warden. Extending a lease is
/// storing a number, so a daemon that hangs extends nothing, and the warden acts on the numbers
/// here. Create the board before the warden is forked. Thread-safe.
///
/// One slot, as the warden sees it (`d` is its deadline, `g` its grace):
///
///   no lease --extend--> held until d --d passes--> TERM --d + g passes--> KILL --> no lease
///                         ^      |
///                         +extend+
///
/// The KILL goes to every process of the slot's programs, and to the daemon if jobs of the slot
/// still run inside it. A released lease keeps its deadline for the jobs that still run.
class LeaseBoard {
 public:
  /// `slots`: one for each queue partition. Errors: kFailed, no shared memory.
  [[nodiscard]] static Result<LeaseBoard> create(LeaseSlot slots);

  [[nodiscard]] LeaseSlot slots() const noexcept { return head_.get_deleter().slots; }

  /// The lease of `slot` holds until `deadline`; jobs that still run at `deadline + grace` are
  /// killed. True: the warden may not read the slot in time and must be woken, which
  /// ProcessHost::set_lease() does.
  [[nodiscard]] bool extend(LeaseSlot slot, Instant deadline, Duration grace) noexcept;

  /// Releases the lease: nothing starts under it any more. Jobs may run on until the deadline.
  void clear(LeaseSlot slot) noexcept { at(slot).given_up.store(true); }

  /// The last deadline, also of a released lease; the epoch if there was none.
  [[nodiscard]] Instant deadline(LeaseSlot slot) const noexcept {
    return Instant{Duration{at(slot).deadline_ns.load()}};
  }
  [[nodiscard]] Duration grace(LeaseSlot slot) const noexcept {
    return Duration{at(slot).grace_ns.load()};
  }

  /// Whether a job may start under `slot` at `now`. Always true for kNoLease.
  [[nodiscard]] bool holds(LeaseSlot slot, Instant now) const noexcept {
    return slot == kNoLease || (now < deadline(slot) && !at(slot).given_up.load());
  }

  /// Counts a job that is about to run inside the daemon, until release(). False: the lease does
  /// not hold, and the job is not counted. kNoLease is always admitted and never counted.
  [[nodiscard]] bool admit(LeaseSlot slot) noexcept;
  void release(LeaseSlot slot) noexcept {
    if (slot != kNoLease) --at(slot).in_process_jobs;
  }

  /// Notes that the daemon's loop makes progress. From the first beat on HangWatch checks this.
  void beat() noexcept { head_->heartbeat.store(++beats_); }
  /// Stops the check until the next beat: the loop has ended, or does something that may take long.
  void rest() noexcept { head_->heartbeat.store(0); }
  /// Changes with each beat; 0: at rest.
  [[nodiscard]] std::uint64_t heartbeat() const noexcept { return head_->heartbeat.load(); }

  /// The jobs that run inside the daemon and can only be killed with it.
  [[nodiscard]] std::uint32_t in_process_jobs(LeaseSlot slot) const noexcept {
    return at(slot).in_process_jobs.load();
  }

 private:
  // A cache line each: the loop's thread writes one slot without delaying readers of the others.
  struct alignas(64) Slot {
    std::atomic<std::int64_t> deadline_ns;
    std::atomic<std::int64_t> grace_ns;
    std::atomic<std::uint32_t> in_process_jobs;
    std::atomic<bool> given_up;
  };
  struct alignas(64) Head {
    std::atomic<std::uint64_t> heartbeat;
  };
  // A lock inside an atomic would not work between two processes.
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);

  struct Unmap {
    LeaseSlot slots;
    void operator()(Head* head) const noexcept;
  };

  LeaseBoard(Head* head, LeaseSlot slots)
      : head_(head, Unmap{slots}), slots_(reinterpret_cast<Slot*>(head + 1)) {}
  [[nodiscard]] Slot& at(LeaseSlot slot) const noexcept;

  std::unique_ptr<Head, Unmap> head_;
  Slot* slots_;              // right behind the head
  std::uint64_t beats_ = 0;  // of this process
};

/// Detects that the daemon's loop has made no progress for `timeout`, by reading its heartbeat once
/// a period. A false alarm would kill jobs, so silence counts only while the watcher itself ran: at
/// most one and a half periods a look, and not at all when a look comes so late that the watcher
/// must have been stopped too (a suspended or frozen host, a stopped cgroup, swapping). A passive
/// object.
class HangWatch {
 public:
  /// Zero: never.
  explicit HangWatch(Duration timeout)
      : timeout_(timeout),
        period_(std::min<Duration>(timeout / 8, std::chrono::milliseconds{500})) {}

  [[nodiscard]] bool enabled() const { return timeout_ > Duration::zero(); }
  [[nodiscard]] Duration timeout() const { return timeout_; }
  /// Between two looks.
  [[nodiscard]] Duration period() const { return period_; }

  /// `now` is CLOCK_MONOTONIC, which stops while the host is suspended; `heartbeat` is
  /// LeaseBoard::heartbeat(). True: the loop hangs.
  [[nodiscard]] bool look(Instant now, std::uint64_t heartbeat) {
    const Duration since = now - std::exchange(last_look_, now);
    const bool was_away = since > 4 * period_;
    const bool beats = std::exchange(heartbeat_, heartbeat) != heartbeat;
    if (was_away || beats || heartbeat == 0) {
      silent_ = Duration::zero();
      return false;
    }
    silent_ += std::min(since, period_ * 3 / 2);
    return silent_ >= timeout_;
  }

 private:
  Duration timeout_;
  Duration period_;
  Instant last_look_{};
  std::uint64_t heartbeat_ = 0;
  Duration silent_{};
};

}  // namespace lictor::exec
