#include "exec/warden_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "base/time_text.h"

namespace lictor::exec {
namespace {

// The source of an event; from kFirstAttempt on, an attempt's output.
enum : std::uint64_t { kChannel, kDaemon, kTimer, kSignals, kLooks, kFirstAttempt };

// Orders read in one go, so that a burst does not delay a deadline.
constexpr int kOrdersAtOnce = 64;

Instant after(Instant start, Duration wait) {
  return wait < Instant::max() - start ? start + wait : Instant::max();
}

void must_watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t about) {
  LICTOR_ASSERT(watch(epoll, operation, fd, events, about));
}

// Closing alone would not remove it from the epoll set: a child before its execve has a copy.
void unwatch(int epoll, UniqueFd& fd) {
  if (!fd) return;
  epoll_ctl(epoll, EPOLL_CTL_DEL, fd.get(), nullptr);
  fd.reset();
}

std::optional<Cgroups::Number> number_of(const std::optional<Cgroups::Group>& group) {
  return group ? std::optional{group->number} : std::nullopt;
}

// Gives the folder of handover files to the job's user. Returns 0 or errno.
int give_folder(const std::string& path, uid_t user) {
  const UniqueFd folder{open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (!folder || fstat(folder.get(), &info) != 0) return errno;
  if (info.st_uid == user) return 0;
  constexpr auto kSameGroup = static_cast<gid_t>(-1);
  return fchownat(folder.get(), "", user, kSameGroup, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

// Gives a handover file to the daemon's user, if the job's user owns it under this name only. The
// daemon refuses all others.
void take_file(const std::string& path, uid_t user) {
  const UniqueFd file{open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return;
  if (!S_ISREG(info.st_mode) || info.st_uid != user || info.st_nlink != 1) return;
  (void)!fchownat(file.get(), "", geteuid(), static_cast<gid_t>(-1), AT_EMPTY_PATH);
}

}  // namespace

WardenLoop::WardenLoop(const LeaseBoard& board, Channel channel, ProgramTable programs,
                       Cgroups cgroups, UniqueFd daemon, pid_t daemon_pid, std::string path,
                       Duration hang_timeout, GiveBackLocks give_back)
    : board_(board),
      channel_(std::move(channel)),
      programs_(std::move(programs)),
      cgroups_(std::move(cgroups)),
      daemon_(std::move(daemon)),
      daemon_pid_(daemon_pid),
      path_(std::move(path)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      ends_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      looks_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      strays_(cgroups_),
      locks_(std::move(give_back)),
      hang_watch_(hang_timeout) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signals_.reset(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!epoll_ || !ends_ || !timer_ || !signals_ || !looks_) {
    std::fprintf(stderr,
                 "lictor: cannot make the warden's file descriptors: %s; raise the limit of open "
                 "files\n",
                 errno_text().c_str());
    _exit(EXIT_FAILURE);  // To the daemon, the warden has died.
  }
  watch_channel();
  if (daemon_) must_watch(epoll_.get(), EPOLL_CTL_ADD, daemon_.get(), EPOLLIN, kDaemon);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), EPOLLIN, kTimer);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, signals_.get(), EPOLLIN, kSignals);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, looks_.get(), EPOLLIN, kLooks);
}

void WardenLoop::run() {
  std::array<epoll_event, 64> events{};
  while (!daemon_gone_ || !attempts_.empty() || !strays_.found().empty() || channel_.backed_up() ||
         !locks_.idle()) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    LICTOR_ASSERT(count >= 0 || errno == EINTR);

    bool timer_fired = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      switch (event.data.u64) {
        case kChannel:
          if ((event.events & EPOLLOUT) != 0 && !channel_.flush()) lose_channel();
          if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0 && !daemon_gone_) read_orders();
          break;
        case kDaemon:
          unwatch(epoll_.get(), daemon_);
          lose_daemon();
          discard_outputs();
          break;
        case kTimer:
          timer_fired = true;
          break;
        case kSignals: {
          signalfd_siginfo ignored{};  // One SIGCHLD may stand for many.
          (void)!read(signals_.get(), &ignored, sizeof(ignored));
          find_ended();
          sweep_due_ = true;
          break;
        }
        case kLooks:
          check_heartbeat();
          break;
        default:
          discard_output(AttemptId{event.data.u64 - kFirstAttempt});
      }
    }

    if (timer_fired) {
      std::uint64_t ignored = 0;
      if (read(timer_.get(), &ignored, sizeof(ignored)) > 0) armed_ = Instant::max();
    }
    if (timer_fired || leases_changed_) {
      const Instant now = boot_now();
      check_leases(now);
      kill_what_is_due(now);
      arm_timer();
      leases_changed_ = false;
    }
    if (sweep_due_) sweep();
    if (daemon_gone_) give_back_locks();
    watch_channel();
    watch_heartbeat();
  }
  cgroups_.remove();
}

// --- Orders

void WardenLoop::read_orders() {
  Packet packet;
  for (int i = 0; i < kOrdersAtOnce; ++i) {
    switch (channel_.receive(packet)) {
      case Channel::Received::kNothing:
        return;
      case Channel::Received::kGone:
        return lose_channel();
      case Channel::Received::kPacket:
        break;
    }
    if (auto order = decode_order(packet.bytes)) {
      std::visit([&](auto& one) { obey(one, packet); }, *order);
    } else if (const AttemptId id = spawn_head(packet.bytes)) {
      send(SpawnFailed{id, Step::kInputOutput, EMFILE});  // No descriptor for a long order.
    }
  }
}

void WardenLoop::obey(Spawn& spawn, Packet& packet) {
  if (packet.fds.size() != 3) {
    return send(SpawnFailed{spawn.attempt, Step::kInputOutput, EMFILE});
  }
  // The daemon may have hung since its decision.
  if (spawn.ends_with_lease && !board_.holds(spawn.slot, boot_now())) {
    return send(SpawnFailed{spawn.attempt, Step::kLease, 0});
  }

  // A daemon that is not root must not become root through its warden.
  const auto& user = spawn.program.user;
  if (user && user->uid == 0 && geteuid() != 0) {
    return send(SpawnFailed{spawn.attempt, Step::kUser, EPERM});
  }
  if (user && !spawn.handover_folder.empty()) {
    if (const int error = give_folder(spawn.handover_folder, user->uid); error != 0) {
      return send(SpawnFailed{spawn.attempt, Step::kHandover, error});
    }
  }

  const uid_t uid = user ? user->uid : 0;
  const auto place = programs_.take_place();
  if (!place) return send(SpawnFailed{spawn.attempt, Step::kClone, EAGAIN});

  spawn.program.environment.push_back(strays_.mark_of(spawn.attempt));
  Spawning spawning{std::move(spawn.program), path_};
  auto cgroup = cgroups_.take();
  Spawning::Child child =
      spawning.start(packet.fds[0].get(), packet.fds[1].get(), cgroup ? cgroup->folder.get() : -1);
  if (child.pid < 0) {
    programs_.give_back(*place);
    if (cgroup) cgroups_.give_back(*std::move(cgroup));
    return send(SpawnFailed{spawn.attempt, Step::kClone, child.error});
  }
  programs_.set(*place, child.pid);

  Attempt attempt{std::move(spawning)};
  attempt.pid = child.pid;
  attempt.place = *place;
  strays_.program_started(spawn.attempt, child.pid, number_of(cgroup));
  attempt.cgroup = std::move(cgroup);
  attempt.uid = uid;
  attempt.handover_files = std::move(spawn.handover_files);
  attempt.pidfd = std::move(child.pidfd);
  attempt.output = std::move(packet.fds[2]);
  attempt.slot = spawn.slot;
  attempt.ends_with_lease = spawn.ends_with_lease;
  attempt.grace = spawn.grace;
  must_watch(ends_.get(), EPOLL_CTL_ADD, attempt.pidfd.get(), EPOLLIN, spawn.attempt.value);
  if (attempt.spawning.failed_step() == Step::kNone) send(Started{spawn.attempt, attempt.pid});
  const bool fresh = attempts_.emplace(spawn.attempt, std::move(attempt)).second;
  LICTOR_ASSERT(fresh);
  if (spawn.ends_with_lease && spawn.slot != kNoLease && board_.deadline(spawn.slot) < armed_) {
    leases_changed_ = true;
  }
}

void WardenLoop::obey(const Stop& order, Packet&) {
  const auto found = attempts_.find(order.attempt);
  if (found == attempts_.end()) return;  // It ended meanwhile.
  stop(found->second, StopCause::kStop, after(boot_now(), order.grace));
  leases_changed_ = true;
}

void WardenLoop::obey(const LeaseChanged&, Packet&) { leases_changed_ = true; }

void WardenLoop::obey(HeldLock& lock, Packet&) { locks_.take(std::move(lock)); }

// --- Ends

void WardenLoop::check_leases(Instant now) {
  for (LeaseSlot number = 0; number < board_.slots(); ++number) {
    const Instant deadline = board_.deadline(number);
    if (deadline == Instant{} || now < deadline) continue;

    const Instant kill_at = after(deadline, board_.grace(number));
    for (auto& [id, attempt] : attempts_) {
      if (attempt.slot != number || !attempt.ends_with_lease) continue;
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
  } else if (getppid() == daemon_pid_) {  // else its pid may be another process's
    sent = kill(daemon_pid_, SIGKILL) == 0;
  }
  // A daemon that died by itself still has its jobs on the board: no message.
  if (!sent || daemon_gone_ || std::exchange(told_of_kill_, true)) return;
  tell(why);
}

void WardenLoop::check_heartbeat() {
  std::uint64_t ignored = 0;
  if (read(looks_.get(), &ignored, sizeof(ignored)) <= 0 || daemon_gone_) return;
  const Instant now{std::chrono::steady_clock::now().time_since_epoch()};
  if (!hang_watch_.look(now, board_.heartbeat())) return;
  kill_daemon("the daemon hangs: its loop has not turned for hang_timeout (" +
              format_duration(hang_watch_.timeout()) +
              "): killed the daemon; its jobs end, and its locks are released");
  lose_daemon();
}

// Dead with all its threads and jobs; a closed channel does not prove that. Without a pidfd, a dead
// daemon is one that is no longer our parent (PR_SET_PDEATHSIG wakes us then).
bool WardenLoop::daemon_is_dead() const {
  return daemon_gone_ && !daemon_ && getppid() != daemon_pid_;
}

// No other daemon may lead before the last job is dead. An unknown stray may be of any lease.
void WardenLoop::give_back_locks() {
  if (!daemon_is_dead()) return;
  for (const auto& [pid, owner] : strays_.found()) {
    if (!attempts_.contains(owner)) return;
  }
  locks_.give_back([this](LeaseSlot slot) {
    return std::any_of(attempts_.begin(), attempts_.end(),
                       [slot](const auto& attempt) { return attempt.second.slot == slot; });
  });
}

// A daemon may close the channel, live on and read the outputs. Its pidfd reports its end; without
// one, nothing does.
void WardenLoop::lose_channel() {
  // A daemon that exits in order only ends its direction (Channel::finish_sending) and waits for us.
  // It has released its locks itself.
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
    stop(attempt, StopCause::kDaemonGone, after(now, attempt.grace));
  }
  kill_unknown_strays_ = true;
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
  // Kills the group at once; the sweep would need a round for each generation. The zombie keeps the
  // group's number from being reused.
  kill(-found->second.pid, SIGKILL);
  if (found->second.cause == StopCause::kLease) kill_unknown_strays_ = true;
  unwatch(ends_.get(), found->second.pidfd);
  ++unswept_;
  sweep_due_ = true;
}

void WardenLoop::discard_outputs() {
  if (std::exchange(discarding_, true)) return;
  for (const auto& [id, attempt] : attempts_) {
    must_watch(epoll_.get(), EPOLL_CTL_ADD, attempt.output.get(), EPOLLIN,
               kFirstAttempt + id.value);
  }
}

void WardenLoop::discard_output(AttemptId id) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  std::array<char, 4096> ignored{};
  const ssize_t n = read(found->second.output.get(), ignored.data(), ignored.size());
  if (n == 0) unwatch(epoll_.get(), found->second.output);
}

// --- Strays

// Strays of an ended program are killed; each death brings a SIGCHLD, and with it the next sweep.
void WardenLoop::sweep() {
  sweep_due_ = false;
  strays_.search([this](pid_t pid) { return locks_.owns(pid); });

  // A stray of unknown attempt is killed when any lease runs out, or when no attempt is left.
  const bool kill_unknown = kill_unknown_strays_ || daemon_gone_ || attempts_.size() == unswept_;
  bool unknown_left = false;
  std::vector<AttemptId> held;
  for (const auto& [pid, owner] : strays_.found()) {
    const auto found = attempts_.find(owner);
    const bool unknown = found == attempts_.end();
    if (unknown ? kill_unknown : found->second.ended) {
      if (!unknown && found->second.cgroup) cgroups_.kill(*found->second.cgroup);
      kill_with_group(pid);
    }
    if (unknown) unknown_left = true;
    if (!unknown) held.push_back(owner);
  }
  kill_unknown_strays_ = kill_unknown_strays_ && unknown_left;
  if (unswept_ == 0) return;

  for (auto it = attempts_.begin(); it != attempts_.end();) {
    auto& [id, attempt] = *it;
    const bool gone = attempt.ended && std::find(held.begin(), held.end(), id) == held.end();
    if (gone) {
      report_exit(id, attempt);
      if (daemon_gone_) unwatch(epoll_.get(), attempt.output);
      --unswept_;
    }
    it = gone ? attempts_.erase(it) : std::next(it);
  }
}

void WardenLoop::report_exit(AttemptId id, Attempt& attempt) {
  programs_.give_back(attempt.place);  // Before its pid can be reused.
  strays_.program_gone(attempt.pid, number_of(attempt.cgroup));
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(attempt.pid), &info, WEXITED) != 0) {
    LICTOR_ASSERT(errno == EINTR);
  }
  if (attempt.cgroup) cgroups_.give_back(*std::move(attempt.cgroup));
  for (const std::string& path : attempt.handover_files) take_file(path, attempt.uid);
  if (attempt.spawning.failed_step() != Step::kNone) {
    return send(SpawnFailed{id, attempt.spawning.failed_step(), attempt.spawning.error()});
  }
  send(Exited{id, info.si_code, info.si_status, attempt.cause});
}

void WardenLoop::send(const Report& report) {
  Packet packet{encode(report), {}};
  if (!channel_.send(packet)) lose_channel();
}

// --- Waiting

void WardenLoop::arm_timer() {
  const Instant now = boot_now();
  Instant next = Instant::max();
  for (LeaseSlot number = 0; number < board_.slots(); ++number) {
    const Instant deadline = board_.deadline(number);
    if (deadline == Instant{}) continue;
    for (const Instant wake : {deadline, after(deadline, board_.grace(number))}) {
      if (wake > now) next = std::min(next, wake);
    }
  }
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt.ended) next = std::min(next, attempt.kill_at);
  }
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

// Only while the daemon holds a lock that another host could take.
void WardenLoop::watch_heartbeat() {
  const bool look = hang_watch_.enabled() && !daemon_gone_ && locks_.holds_any();
  if (std::exchange(looking_, look) == look) return;
  itimerspec when{};
  if (look) when.it_value.tv_nsec = when.it_interval.tv_nsec = hang_watch_.period().count();
  timerfd_settime(looks_.get(), 0, &when, nullptr);
}

void WardenLoop::watch_channel() {
  const std::uint32_t events =
      (daemon_gone_ ? 0U : EPOLLIN) | (channel_.backed_up() ? EPOLLOUT : 0U);
  if (events == watched_events_) return;
  if (events == 0) {  // Remove it: epoll would report a hang-up again and again.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel_.fd(), nullptr);
  } else {
    must_watch(epoll_.get(), watched_events_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, channel_.fd(),
               events, kChannel);
  }
  watched_events_ = events;
}

}  // namespace lictor::exec
