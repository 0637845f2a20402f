// How attempts end: when they are stopped, with their lease, with the daemon, or by themselves.

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/time_text.h"
#include "exec/warden_log.h"
#include "exec/warden_loop.h"

namespace lictor::exec {
namespace {

// The time between two looks for ends that bring no signal.
constexpr Duration kRecheckAfter = std::chrono::milliseconds{100};

// How long a debugger may withhold the end of its program. After that the program counts as killed.
constexpr Duration kTracerPatience = std::chrono::seconds{1};

// How long the reading of marks may take. After that the strays count as of unknown attempt.
constexpr Duration kMarkPatience = std::chrono::seconds{1};

struct Mark {
  pid_t stray = 0;
  AttemptId attempt;
};

// Gives a handover file to the daemon's user, if the job's user owns it and it has no other name.
// The daemon refuses all other files.
void take_file(const std::string& path, uid_t user) {
  const UniqueFd file{open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return;
  if (!S_ISREG(info.st_mode) || info.st_uid != user || info.st_nlink != 1) return;
  (void)!fchownat(file.get(), "", geteuid(), static_cast<gid_t>(-1), AT_EMPTY_PATH);
}

}  // namespace

Instant WardenLoop::after(Instant start, Duration wait) {
  return wait < Instant::max() - start ? start + wait : Instant::max();
}

void WardenLoop::check_leases(Instant now) {
  for (LeaseSlot number = 0; number < board_.slots(); ++number) {
    const Instant deadline = board_.deadline(number);
    if (deadline == Instant{} || now < deadline) continue;

    const Instant kill_at = after(deadline, board_.grace(number));
    for (auto& [id, attempt] : attempts_) {
      if (attempt.order.slot != number || !attempt.order.ends_with_lease) continue;
      stop(attempt, StopCause::kLease, kill_at);
      kill_unknown_strays_ = true;
      sweep_due_ = true;
    }
    if (now < kill_at) continue;
    if (board_.in_process_jobs(number) == 0) continue;
    kill_daemon(
        "the lease is lost and jobs inside the daemon did not end within kill_grace; "
        "killed the daemon, since only that ends them");
  }
}

void WardenLoop::kill_daemon(std::string_view why) {
  bool sent = false;
  if (daemon_) {
    sent = syscall(SYS_pidfd_send_signal, daemon_.get(), SIGKILL, nullptr, 0) == 0;
  } else if (getppid() == daemon_pid_) {  // otherwise the pid may be reused
    sent = kill(daemon_pid_, SIGKILL) == 0;
  }
  // A daemon that died by itself still has its jobs on the board: no message.
  if (!sent || daemon_gone_ || std::exchange(kill_is_logged_, true)) return;
  (void)helpers_.start([why] { emit(why); });
}

void WardenLoop::check_heartbeat() {
  std::uint64_t ignored = 0;
  if (read(heartbeat_timer_.get(), &ignored, sizeof(ignored)) <= 0 || daemon_gone_) return;
  const Instant now{std::chrono::steady_clock::now().time_since_epoch()};
  if (!hang_watch_.look(now, board_.heartbeat())) return;
  kill_daemon("the daemon hangs: its loop has not turned for hang_timeout (" +
              format_duration(hang_watch_.timeout()) +
              "): killed the daemon; its jobs end, and its locks are released");
  lose_daemon();
}

// The daemon is dead with all its threads and jobs; a closed channel does not prove that. Without a
// pidfd, it is dead once it is no longer our parent (PR_SET_PDEATHSIG wakes us then).
bool WardenLoop::daemon_is_dead() const {
  return daemon_gone_ && !daemon_ && getppid() != daemon_pid_;
}

// No other daemon may lead before the last job is dead. An unknown stray may be of any lease.
void WardenLoop::release_locks() {
  if (!daemon_is_dead()) return;
  for (const auto& [pid, owner] : strays_.found()) {
    if (!attempts_.contains(owner)) return;
  }
  locks_.release_unused([this](LeaseSlot slot) {
    return std::ranges::any_of(attempts_, [slot](const auto& attempt) {
      return attempt.second.order.slot == slot || attempt.second.order.is_worker;
    });
  });
}

// A daemon may close the channel, live on and read the outputs. Its pidfd reports its end; without
// a pidfd, nothing does.
void WardenLoop::lose_channel() {
  // A daemon that exits in order only ends its direction (Channel::finish_sending) and waits for
  // us. It has released its locks itself.
  pollfd channel{channel_.fd(), 0, 0};
  (void)poll(&channel, 1, 0);
  if ((channel.revents & POLLHUP) == 0) locks_.forget_all();
  lose_daemon();
  if (!daemon_) discard_outputs();
}

void WardenLoop::lose_daemon() {
  if (std::exchange(daemon_gone_, true)) return;
  const Instant now = boot_now();
  for (auto& [id, attempt] : attempts_) {
    stop(attempt, StopCause::kDaemonGone, after(now, attempt.order.grace));
  }
  sweep_due_ = true;
  leases_changed_ = true;
}

// The first cause and the earliest kill_at count.
void WardenLoop::stop(Attempt& attempt, StopCause cause, Instant kill_at) {
  attempt.kill_at = std::min(attempt.kill_at, kill_at);
  if (attempt.ended || attempt.cause != StopCause::kNone) return;
  attempt.cause = cause;
  // Before setsid() there is only the child itself, which dies when it unblocks signals.
  if (kill(-attempt.pid, SIGTERM) != 0) kill(attempt.pid, SIGTERM);
  kill(-attempt.pid, SIGCONT);  // A stopped process could not end.
}

void WardenLoop::kill_what_is_due(Instant now) {
  for (auto& [id, attempt] : attempts_) {
    if (attempt.ended || now < attempt.kill_at) continue;
    kill(-attempt.pid, SIGKILL);
    kill(attempt.pid, SIGKILL);
    if (attempt.cgroup) cgroups_.kill(*attempt.cgroup);
    attempt.kill_at = Instant::max();
    attempt.killed = sweep_due_ = true;
  }
}

// A pidfd is ready just before the SIGCHLD comes, so pidfds need not wake us themselves.
void WardenLoop::find_ended() {
  std::array<epoll_event, 64> events{};
  int count = 0;
  do {
    count = epoll_wait(ends_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      program_ended(AttemptId{events[static_cast<std::size_t>(i)].data.u64});
    }
  } while (count == static_cast<int>(events.size()));
}

void WardenLoop::program_ended(AttemptId id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.ended) return;
  found->second.ended = true;
  found->second.ended_at = boot_now();
  // Kills the group at once; the sweep would need a round for each generation. The zombie keeps the
  // group's number from being reused.
  kill(-found->second.pid, SIGKILL);
  if (found->second.cause == StopCause::kLease) kill_unknown_strays_ = true;
  unwatch(ends_.get(), found->second.pidfd);
  ++ended_unreported_;
  sweep_due_ = true;
}

void WardenLoop::arm_timer() {
  Instant next = Instant::max();
  for (LeaseSlot number = 0; number < board_.slots(); ++number) {
    const Instant deadline = board_.deadline(number);
    if (deadline == Instant{}) continue;
    for (const Instant wake : {deadline, after(deadline, board_.grace(number))}) {
      if (wake > checked_at_) next = std::min(next, wake);
    }
  }
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt.ended) next = std::min(next, attempt.kill_at);
  }
  next = std::min(next, recheck_at_);
  if (next == armed_) return;

  armed_ = next;
  itimerspec when{};
  if (next != Instant::max()) {
    const auto since_boot = next.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (since_boot - seconds).count();
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

// --- Strays

// Strays of an ended program are killed; each death brings a SIGCHLD, and with it the next sweep.
void WardenLoop::sweep() {
  sweep_due_ = false;
  strays_.search([this](pid_t pid) { return locks_.owns(pid) || helpers_.owns(pid); });

  // A stray of unknown attempt is killed when any lease runs out, or when no attempt is left.
  const bool reading = reads_marks();
  const bool none_left = daemon_gone_ || attempts_.size() == ended_unreported_;
  bool unknown_left = false;
  bool recheck = false;
  std::vector<AttemptId> held;
  for (const auto& [pid, owner] : strays_.found()) {
    const auto found = attempts_.find(owner);
    const bool unknown = found == attempts_.end();
    const bool unread = strays_.unread().contains(pid);
    const bool kill_unknown = none_left || (kill_unknown_strays_ && !unread);
    if (unknown ? kill_unknown : found->second.ended) {
      if (!unknown && found->second.cgroup) cgroups_.kill(*found->second.cgroup);
      strays_.kill(pid);
      recheck = true;
    }
    if (unknown) unknown_left = true;
    if (!unknown) held.push_back(owner);
  }
  kill_unknown_strays_ = kill_unknown_strays_ && unknown_left;

  for (auto it = attempts_.begin(); it != attempts_.end();) {
    auto& [id, attempt] = *it;
    const bool may_hold = reading && boot_now() < attempt.ended_at + kMarkPatience;
    if (attempt.ended && may_hold) recheck = true;
    const bool dead =
        attempt.ended && !may_hold && std::find(held.begin(), held.end(), id) == held.end();
    if (dead ? !read_exit(id, attempt) : attempt.killed && !attempt.ended) recheck = true;
    const bool gone = dead && attempt.exit && take_over_files(attempt);
    if (gone) {
      report_exit(id, attempt);
      if (daemon_gone_) unwatch(epoll_.get(), attempt.output);
      --ended_unreported_;
    }
    it = gone ? attempts_.erase(it) : std::next(it);
  }
  if (recheck && recheck_at_ == Instant::max()) recheck_at_ = after(boot_now(), kRecheckAfter);
}

// Has a helper read the marks of strays. True: some marks are still unread.
bool WardenLoop::reads_marks() {
  if (mark_reader_ && (!helpers_.runs(mark_reader_->helper) || boot_now() >= mark_reader_->until)) {
    for (Mark mark; read(mark_reader_->answers.get(), &mark, sizeof mark) == sizeof mark;) {
      strays_.learn(mark.stray, mark.attempt);
      mark_reader_->strays.erase(mark.stray);
    }
    for (const pid_t stray : mark_reader_->strays) strays_.learn(stray, {});
    mark_reader_.reset();
  }
  if (mark_reader_) return true;
  if (strays_.unread().empty()) return false;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const UniqueFd writer{ends[1]};
  MarkReader reader{-1, UniqueFd{ends[0]}, strays_.unread(), after(boot_now(), kMarkPatience)};
  const auto read_all = [&] {
    for (const pid_t stray : reader.strays) {
      const Mark mark{stray, strays_.read_mark(stray)};
      (void)!write(Helpers::kKept, &mark, sizeof mark);
    }
  };
  reader.helper = helpers_.start(read_all, writer.get());
  if (reader.helper > 0) mark_reader_ = std::move(reader);
  return mark_reader_.has_value();
}

// False: the tracer still withholds the end.
bool WardenLoop::read_exit(AttemptId id, Attempt& attempt) {
  if (attempt.exit) return true;
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(attempt.pid), &info, WEXITED | WNOHANG) != 0) {
    LICTOR_ASSERT(errno == EINTR);
  }
  if (info.si_pid == 0) {
    if (boot_now() < attempt.ended_at + kTracerPatience) return false;
    info.si_code = CLD_KILLED;
    info.si_status = SIGKILL;
    strays_.leave_to_tracer(attempt.pid);
  }
  strays_.program_gone(attempt.pid, attempt.cgroup);
  if (attempt.cgroup) cgroups_.retire(*std::exchange(attempt.cgroup, std::nullopt));
  attempt.exit = Exited{id, info.si_code, info.si_status, attempt.cause};
  return true;
}

// False: the helper is at work. Only a job that succeeded hands something over.
bool WardenLoop::take_over_files(Attempt& attempt) {
  const Exited& exit = *attempt.exit;
  const bool succeeded = exit.code == CLD_EXITED && exit.status == 0;
  if (daemon_gone_ || !succeeded || attempt.order.handover_files.empty()) return true;
  if (attempt.file_helper == 0) {
    attempt.file_helper = helpers_.start([&attempt] {
      for (const std::string& path : attempt.order.handover_files) take_file(path, attempt.uid);
    });
  }
  return !helpers_.runs(attempt.file_helper);
}

void WardenLoop::report_exit(AttemptId id, const Attempt& attempt) {
  if (attempt.spawning.failed_step() != Step::kNone) {
    return send(SpawnFailed{id, attempt.spawning.failed_step(), attempt.spawning.error()});
  }
  send(*attempt.exit);
}

}  // namespace lictor::exec
