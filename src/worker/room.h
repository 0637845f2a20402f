#pragma once

// The threads and the order of locks:
//
//   loop's thread   start(), stop() of runners --Turn--> pool; set_lease() of the host --> follow()
//   host's thread   a process started or ended: noted in started_, ended_; wakes the room's thread
//   room's thread   epoll over all pipes: one turn takes the events, the notes and the timers
//   log thread      writes what Outbox entries hand over
//
// The mutex is held for no longer than a turn, and nothing in a turn waits: not for a disk, not for
// a process, not for a callback. The loop's thread takes it for each attempt, and a loop that waits
// extends no lease. The room takes its mutex first and the host's second, never the other way.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "base/wake_event.h"
#include "exec/log_writer.h"
#include "exec/process_host.h"
#include "worker/pool.h"

namespace lictor::worker {

/// The home of a daemon's workers: all their processes, a thread that reads their replies, and one
/// that writes their logs. Both threads start with the first pool. Thread-safe.
///
/// For the warden a process is a program as any other, with one cgroup and one mark. Its lease is
/// its own: a slot of the board, whose deadline is the earliest of the leases of its attempts. The
/// warden learns of an earlier deadline before the attempt is written to the process, and from then
/// on the slot follows each lease as it is extended. So a process ends with its first lease that is
/// not extended, also when this daemon hangs. A lease that is over is let go once the process has
/// answered all attempts under it; the process may then be used again, also in a new term. One that
/// has not answered cannot outlive that lease, since the new term begins only when all attempts of
/// the old one are over.
class Room {
 public:
  /// The workers have the slots from `first_slot` on. `host` must outlive the room, which must
  /// outlive the callers of the host's set_lease().
  Room(exec::ProcessHost& host, exec::LeaseSlot first_slot, std::uint32_t slots = kMostProcesses);
  /// All runners must be gone. Ends all processes, and waits for them.
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  /// The pool of such a worker, which may exist already: after a reload that left it as it was. The
  /// caller has joined it. Errors: kFailed, no descriptor or thread.
  [[nodiscard]] Result<std::shared_ptr<Pool>> join(WorkerOptions options);
  void leave(const std::shared_ptr<Pool>& pool);

  /// Holds the mutex, for calls of a pool. Its end runs the entries that these put into the outbox.
  class Turn {
   public:
    explicit Turn(Room& room) : lock_(room.mutex_) {}
    ~Turn() {
      lock_.unlock();
      for (const auto& work : out) work();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    Outbox out;

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// The figures of all workers that are configured or have processes, since the daemon's start, by
  /// queue and type.
  [[nodiscard]] std::map<std::pair<std::string, std::string>, Figures> all_figures();

  // For its pools, within a turn.

  [[nodiscard]] exec::ProcessHost& host() { return host_; }
  /// std::nullopt if there are too many processes.
  [[nodiscard]] std::optional<Process::Identity> take_identity();
  void release(const Process::Identity& identity);
  /// A launch with the callbacks of its process.
  [[nodiscard]] exec::Launch launch_of(const Process::Identity& identity);
  /// Wakes the room's thread: a pool changed a deadline in a turn of another thread.
  void wake() const { wake_.wake(); }
  /// For its thread only.
  [[nodiscard]] exec::LogWriter& logs() { return *logs_; }

 private:
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Pool* owner_of(std::uint64_t number);

  void work();
  [[nodiscard]] int take_events(int wait_ms);

  exec::ProcessHost& host_;

  std::mutex mutex_;  // for the members below, except the threads
  std::vector<exec::LeaseSlot> free_slots_;
  std::uint64_t last_number_ = 0;
  std::vector<std::shared_ptr<Pool>> pools_;
  std::map<std::pair<std::string, std::string>, Figures> past_;  // of pools that are gone
  std::vector<std::uint64_t> started_, ended_;                   // processes, by number
  bool closing_ = false;

  UniqueFd epoll_;
  WakeEvent wake_;
  std::unique_ptr<char[]> buffer_;
  std::unique_ptr<exec::LogWriter> logs_;
  std::thread thread_;
};

}  // namespace lictor::worker
