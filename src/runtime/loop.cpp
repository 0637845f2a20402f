#include "runtime/loop.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/errno_text.h"
#include "runtime/log.h"

namespace lictor::runtime {
namespace {

timespec to_timespec(Duration duration) {
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(duration.count() / 1'000'000'000);
  spec.tv_nsec = static_cast<long>(duration.count() % 1'000'000'000);
  return spec;
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::create() {
  std::unique_ptr<Loop> loop{new Loop};
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  loop->signals_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  loop->timer_.reset(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!loop->wake_.open() || !loop->signals_ || !loop->timer_) {
    return fail(ErrorCode::kFailed, std::string{"cannot make the loop's file descriptors: "} +
                                        errno_text() + "; raise the limit of open files");
  }
  return loop;
}

bool Loop::post(std::function<void()> work) {
  {
    const std::lock_guard lock{posted_mutex_};
    if (ended_) return false;
    posted_.push_back(std::move(work));
  }
  wake();
  return true;
}

void Loop::run_posted(bool last) {
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock{posted_mutex_};
    posted.swap(posted_);
    ended_ = last;
  }
  for (const auto& work : posted) work();
}

void Loop::on_turn(Duration interval, std::function<void()> handler) {
  turn_interval_ = interval;
  on_turn_ = std::move(handler);
}

void Loop::check_clocks() {
  constexpr Duration kTogether = std::chrono::milliseconds{1};
  const Instant boot = boot_now();
  const WallTime wall = wall_now();
  if (boot_now() - boot > kTogether)
    return;  // preempted between the readings; the next turn checks
  if (clock_offset_.stepped(boot, wall) && on_clock_step_) on_clock_step_();
}

Instant Loop::turn() {
  const LogBatch together;
  check_clocks();
  const Instant now = boot_now();
  for (LoopMember* member : members_) member->step(now);
  if (std::this_thread::get_id() == own_thread_) run_posted();
  if (on_turn_) on_turn_();
  // Ask after all steps, since a step may give another member work.
  Instant deadline = Instant::max();
  for (const LoopMember* member : members_) deadline = std::min(deadline, member->next_deadline());
  return deadline;
}

void Loop::acquire() {
  while (turning_.exchange(true)) turning_.wait(true);
}

void Loop::release() {
  turning_ = false;
  turning_.notify_one();
}

void Loop::lend() {
  if (turning_.exchange(true)) return wake();  // perhaps this thread is making the turn
  const Instant deadline = turn();
  const bool is_earlier = stopped_ || deadline < sleeps_until_;
  release();
  if (is_earlier) wake();
}

void Loop::wait(Instant deadline) {
  const Instant now = boot_now();
  const Duration left =
      deadline <= now ? Duration::zero() : std::min<Duration>(deadline - now, turn_interval_);
  if (left > Duration::zero()) {
    // Not a time-out of poll(2): the kernel may delay it by a thousandth (fs/select.c,
    // select_estimate_accuracy()), which is 60 ms after a quiet minute.
    const itimerspec once{{}, to_timespec(left)};
    timerfd_settime(timer_.get(), 0, &once, nullptr);
  }
  polled_.clear();
  for (const int fd : {wake_.fd(), signals_.get(), timer_.get()}) {
    polled_.push_back({fd, POLLIN, 0});
  }
  for (const int fd : watched_) polled_.push_back({fd, POLLIN, 0});
  const bool ready = poll(polled_.data(), polled_.size(), left > Duration::zero() ? -1 : 0) > 0;
  acquire();
  if (ready) read_polled();
}

void Loop::read_polled() {
  // Read the wake-up and the timer, whose counters may be left from an earlier wait.
  for (const pollfd* counted : {&polled_[0], &polled_[2]}) {
    std::uint64_t count = 0;
    if (counted->revents == 0) continue;
    [[maybe_unused]] const auto got = read(counted->fd, &count, sizeof count);
  }
  signalfd_siginfo info{};
  while (polled_[1].revents != 0 && read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (on_signal_) on_signal_(static_cast<int>(info.ssi_signo));
  }
}

void Loop::run() {
  own_thread_ = std::this_thread::get_id();
  while (true) {
    sleeps_until_ = turn();
    if (stopped_) break;
    const Instant deadline = sleeps_until_;
    release();
    wait(deadline);
    if (stopped_) break;
  }
  run_posted(true);
}

}  // namespace lictor::runtime
