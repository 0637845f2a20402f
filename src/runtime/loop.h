#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lictor/result.h"
#include "lictor/time.h"
#include "runtime/clock_offset.h"

namespace lictor::runtime {

/// What the loop serves: it is stepped when it asked to be woken or when its deadline comes.
class Task {
 public:
  virtual ~Task() = default;
  /// On the loop's thread, or one that was lent to it: takes what has come in and acts on it.
  virtual void step(Instant now) = 0;
  /// When to be stepped without being woken; Instant::max() when never.
  [[nodiscard]] virtual Instant next_deadline() const = 0;
};

/// The daemon's decisions, one turn after the other: waits for wake-ups, deadlines, signals and
/// steps of the wall clock, and steps its tasks. Nothing in it may block.
///
/// Turns are made by the loop's thread, which waits in between; or, while it waits, by a thread
/// that was lent: who has just ended a job need not wake another thread up to learn of the next.
/// Never by two at a time, and what is said here of the loop's thread holds for both.
class Loop {
 public:
  /// Blocks SIGTERM, SIGINT and SIGHUP for the calling thread and those that it starts later.
  /// Errors: kFailed, out of file descriptors.
  [[nodiscard]] static Result<std::unique_ptr<Loop>> create();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// In the order in which they are stepped in a turn.
  void add(Task& task) { tasks_.push_back(&task); }

  /// Steps all tasks when `fd` is readable, too; whoever it belongs to reads it then. It must stay
  /// open while run() runs.
  void watch(int fd) { watched_.push_back(fd); }

  /// From any thread: steps all tasks soon.
  void wake() noexcept;

  /// From a thread that holds no lock and has time: steps all tasks soon, on this thread unless
  /// another is at it.
  void lend();

  /// Whether this is the thread of run(), and no lent one.
  [[nodiscard]] bool on_own_thread() const { return std::this_thread::get_id() == own_thread_; }

  /// From any thread: runs `work` on the loop's thread soon, in the order of the calls. What was
  /// taken is run before run() returns. False: the loop has ended, and `work` is dropped.
  bool post(std::function<void()> work);

  /// Handlers, on the loop's thread.
  void on_signal(std::function<void(int)> handler) { on_signal_ = std::move(handler); }
  /// The wall clock stepped against the monotonic clock: somebody set it, or the other stood still.
  /// Found before the tasks of a turn are stepped.
  void on_clock_step(std::function<void()> handler) { on_clock_step_ = std::move(handler); }
  /// After each turn, at least every `interval`: feeds the watchdog.
  void on_turn(Duration interval, std::function<void()> handler);

  /// Until stop() is called on the loop's thread.
  void run();
  void stop() { stopped_ = true; }

 private:
  Loop() = default;
  [[nodiscard]] Instant turn();
  void wait(Instant deadline);
  void read_polled();
  void acquire();
  void release();
  void arm_clock_watch();
  void read_clock_watch();
  void check_clocks();
  void run_posted(bool last);

  std::vector<Task*> tasks_;
  std::vector<int> watched_;
  std::vector<pollfd> polled_;  // our own four, then what is watched
  std::function<void(int)> on_signal_;
  std::function<void()> on_clock_step_;
  std::function<void()> on_turn_;
  Duration turn_interval_ = std::chrono::seconds{10};
  int wake_fd_ = -1;
  int signal_fd_ = -1;
  int clock_fd_ = -1;
  int timer_fd_ = -1;
  bool stopped_ = false;
  std::thread::id own_thread_;
  ClockOffset clock_offset_;

  std::atomic<bool> at_it_ = true;    // somebody makes a turn, or it does not run
  std::atomic<bool> wanted_ = false;  // another turn, by whoever is at it
  Instant sleeps_until_{};            // of whoever is at it

  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
  bool ended_ = false;  // nothing more is taken
};

}  // namespace lictor::runtime
