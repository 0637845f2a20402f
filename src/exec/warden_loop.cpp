#include "exec/warden_loop.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/assert.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "exec/warden_log.h"

namespace lictor::exec {
namespace {

// The source of an event; ids from kFirstAttempt on: the output of an attempt.
enum : std::uint64_t { kChannel, kDaemon, kTimer, kSignals, kHeartbeat, kFirstAttempt };

// Orders read in one go, so that a burst does not delay a deadline.
constexpr int kOrdersAtOnce = 64;

void must_watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t about) {
  LICTOR_ASSERT(watch(epoll, operation, fd, events, about));
}

}  // namespace

WardenLoop::WardenLoop(const LeaseBoard& board, Channel channel, Cgroups cgroups, UniqueFd daemon,
                       pid_t daemon_pid, std::string run_id, Duration hang_timeout,
                       ReleaseLocks release_locks)
    : board_(board),
      channel_(std::move(channel)),
      cgroups_(std::move(cgroups)),
      daemon_(std::move(daemon)),
      daemon_pid_(daemon_pid),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      ends_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      heartbeat_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      strays_(cgroups_, std::move(run_id)),
      locks_(std::move(release_locks)),
      hang_watch_(hang_timeout) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signals_.reset(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!epoll_ || !ends_ || !timer_ || !signals_ || !heartbeat_timer_) {
    emit("cannot make the warden's file descriptors: " + errno_text() +
         "; raise the limit of open files");
    _exit(EXIT_FAILURE);  // For the daemon this is the warden's death.
  }
  channel_.watch_in(epoll_.get(), kChannel);
  if (daemon_) must_watch(epoll_.get(), EPOLL_CTL_ADD, daemon_.get(), EPOLLIN, kDaemon);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), EPOLLIN, kTimer);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, signals_.get(), EPOLLIN, kSignals);
  must_watch(epoll_.get(), EPOLL_CTL_ADD, heartbeat_timer_.get(), EPOLLIN, kHeartbeat);
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
        case kHeartbeat:
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
    const bool checks = timer_fired || leases_changed_;
    if (checks) {
      const Instant now = checked_at_ = boot_now();
      check_leases(now);
      kill_what_is_due(now);
      leases_changed_ = false;
      if (now >= recheck_at_) {
        recheck_at_ = Instant::max();
        find_ended();
        sweep_due_ = true;
      }
    }
    if (sweep_due_) sweep();
    if (checks || leases_changed_ || recheck_at_ < armed_) arm_timer();
    if (daemon_gone_) release_locks();
    channel_.watch_in(epoll_.get(), kChannel, !daemon_gone_);
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
      send(SpawnFailed{id, Step::kInputOutput, EMFILE});  // no descriptor for a long order
    }
  }
}

// Every failure is reported, so that the daemon's core gets an end for each start. A dead daemon
// needs none.
void WardenLoop::obey(Spawn& spawn, Packet& packet) {
  if (daemon_gone_) return;
  if (packet.fds.size() != (spawn.is_worker ? 4U : 3U)) {
    return send(SpawnFailed{spawn.attempt, Step::kInputOutput, EMFILE});
  }
  // The daemon may have hung since it decided this.
  if (spawn.ends_with_lease && !board_.holds(spawn.slot, boot_now())) {
    return send(SpawnFailed{spawn.attempt, Step::kLease, 0});
  }

  // A daemon that is not root must not become root through its warden.
  const auto& user = spawn.program.user;
  if (user && user->uid == 0 && geteuid() != 0) {
    return send(SpawnFailed{spawn.attempt, Step::kUser, EPERM});
  }

  const AttemptId id = spawn.attempt;
  const uid_t uid = user ? user->uid : 0;
  spawn.program.environment.push_back(strays_.mark_of(id));
  Spawning spawning{std::move(spawn.program), spawn.handover_folder};
  auto cgroup = cgroups_.take();
  const Spawning::Streams streams{packet.fds[0].get(), packet.fds[1].get(),
                                  spawn.is_worker ? packet.fds[3].get() : -1};
  Spawning::Child child = spawning.start(streams, cgroup ? cgroup->folder.get() : -1);
  if (child.pid < 0) {
    if (cgroup) cgroups_.retire(*std::move(cgroup));
    return send(SpawnFailed{id, Step::kClone, child.error});
  }

  const auto [place, fresh] = attempts_.try_emplace(
      id, Attempt{std::move(spawn), std::move(spawning), child.pid, std::move(child.pidfd),
                  std::move(packet.fds[2]), uid, std::move(cgroup)});
  LICTOR_ASSERT(fresh);
  const Attempt& attempt = place->second;
  strays_.program_started(id, attempt.pid, attempt.cgroup);
  must_watch(ends_.get(), EPOLL_CTL_ADD, attempt.pidfd.get(), EPOLLIN, id.value);
  // Report only now: if the daemon is gone, this stops all attempts.
  if (attempt.spawning.failed_step() == Step::kNone) send(Started{id, attempt.pid});
}

void WardenLoop::obey(const Stop& order, Packet&) {
  const auto found = attempts_.find(order.attempt);
  if (found == attempts_.end()) return;  // It ended meanwhile.
  stop(found->second, StopCause::kStop, after(boot_now(), order.grace));
  leases_changed_ = true;
}

void WardenLoop::obey(const LeaseChanged&, Packet&) { leases_changed_ = true; }

void WardenLoop::obey(HeldLock& lock, Packet&) { locks_.take(std::move(lock)); }

void WardenLoop::send(const Report& report) {
  Packet packet{encode(report), {}};
  if (!channel_.send(packet)) lose_channel();
}

// --- Waiting

// Checks the heartbeat only while the daemon holds a lock that another host could take.
void WardenLoop::watch_heartbeat() {
  const bool look = hang_watch_.enabled() && !daemon_gone_ && locks_.holds_any();
  if (std::exchange(watches_heartbeat_, look) == look) return;
  itimerspec when{};
  if (look) when.it_value.tv_nsec = when.it_interval.tv_nsec = hang_watch_.period().count();
  timerfd_settime(heartbeat_timer_.get(), 0, &when, nullptr);
}

// A job that still prints would block on a full pipe, and could not clean up within its grace.
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

}  // namespace lictor::exec
