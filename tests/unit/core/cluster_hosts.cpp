// The cluster's hosts: their wardens kill a daemon that hangs, and release a dead one's lock; their
// clocks drift, are set, and stand still with them.

#include <algorithm>

#include "cluster.h"
#include "fault.h"

namespace lictor::core::test {

void Cluster::crash(Daemon& daemon) {
  ++daemon.incarnation;
  end_queue(daemon);
  daemon.division.reset();
  daemon.inbox.clear();
  daemon.waiting.clear();
  daemon.paused_until = Instant::min();
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.daemon == &daemon; });
  if (daemon.is_standing) {  // whatever ends it there ends its warden and its jobs, too
    set_wall_right(daemon);
    for (auto& [id, job] : daemon.jobs) job.dies = now;
    return;
  }
  // The warden ends the jobs that its daemon left.
  for (auto& [id, job] : daemon.jobs) {
    job.dies = std::min(job.dies, now + stopping(daemon.options.kill_grace));
  }
  const Warden left = warden(daemon);
  if (!daemon.kept_session.empty() && left.requests != 0) daemon.warden = left;
  give_back(daemon);
  // Its entry stays for as long as its session.
  const Duration ttl = divides ? Duration{daemon.options.session_ttl} : 500ms;
  at(now + ttl, [this, &daemon, incarnation = daemon.incarnation] {
    if (daemon.incarnation != incarnation || members_.erase(daemon.name) == 0) return;
    tell_members();
  });
}

void Cluster::pause(Daemon& daemon, Duration duration) {
  if (daemon.is_standing) return;
  daemon.paused_until = now + duration;
  if (hang_timeout == Duration::zero() || duration <= hang_timeout) return;
  at(now + hang_timeout, [this, &daemon, incarnation = daemon.incarnation] {
    const bool hangs = daemon.incarnation == incarnation && now < daemon.paused_until;
    if (!hangs || !daemon.queue || daemon.kept_index == 0) return;
    crash(daemon);
    if (!daemon.restart_at) restart_after(daemon, 1s);
  });
}

// When the last of its jobs is dead.
void Cluster::give_back(Daemon& daemon) {
  if (!daemon.warden || daemon.gives_back) return;
  if (!daemon.jobs.empty() && !FAULT(GiveBackWithJobs)) return;
  daemon.gives_back = true;
  const auto steps = std::make_shared<LockRelease>(daemon.kept_session, daemon.kept_index);
  const Instant begin = now + daemon.warden->late;
  at(begin, [=, this, &daemon] { ask_back(daemon, steps, begin + 5s); });
}

void Cluster::ask_back(Daemon& daemon, const std::shared_ptr<LockRelease>& steps, Instant until) {
  if (steps->done() || now >= until || daemon.warden->requests == 0) {
    daemon.warden.reset();
    daemon.gives_back = false;
    return;
  }
  --daemon.warden->requests;
  if (steps->lock_is_free()) daemon.remembered.reset();
  std::visit(
      [&](const auto& request) {
        if constexpr (requires { steps->on(serve(daemon, request)); }) {
          send_back(daemon, steps, until, request);
        }
      },
      steps->ask(RequestId{1}));
}

template <class Request>
void Cluster::send_back(Daemon& daemon, const std::shared_ptr<LockRelease>& steps, Instant until,
                        const Request& request) {
  const Fault f = fault(daemon, request);
  const auto hear = [=, this, &daemon, heard = std::make_shared<bool>(false)](const auto& reply) {
    if (std::exchange(*heard, true)) return;
    if (steps->on(reply)) return ask_back(daemon, steps, until);
    at(now + 100ms, [=, this, &daemon] { ask_back(daemon, steps, until); });
  };
  using Reply = decltype(serve(daemon, request));
  at(now + (f.refused ? f.back : 1s), [=] { hear(Reply{}); });  // which says nothing
  if (f.refused || f.lose_request || f.no_leader) return;
  at(now + f.out, [=, this, &daemon] {
    store.tamper(now, f.tampering);
    const Reply reply = serve(daemon, request);
    store.tamper(now, {});
    if (trace) {
      show("warden of " + daemon.name + ": " + effect_text(request) +
           (f.lose_reply ? " (reply lost)" : ""));
    }
    if (!f.lose_reply) at(now + f.back, [=] { hear(reply); });
  });
}

void Cluster::note_lock(Daemon& daemon, const Event& event) {
  if (const auto* lock = std::get_if<LockReplied>(&event)) {
    const bool acquired = lock->answer == LockReplied::Answer::kAcquired;
    if (!acquired || lock->request != daemon.lock_asked.request) return;
    daemon.kept_session = daemon.lock_asked.session;
    daemon.kept_index = lock->modify_index;
  } else if (const auto* destroyed = std::get_if<SessionDestroyed>(&event)) {
    if (destroyed->outcome == Outcome::kApplied) daemon.kept_session.clear();
  }
}

void Cluster::step_clock(Daemon& daemon, std::chrono::milliseconds by) {
  if (by == std::chrono::milliseconds::zero()) return;
  daemon.clock_stepped = true;
  daemon.wall_offset += by;
  // The clock is read to the millisecond, so that a step of 10 ms may look like one of 9, which is
  // taken for drift.
  if (by > 10ms || by < -10ms) daemon.stepped_at = now;
  if (daemon.queue && !daemon.is_standing) tell(daemon, clock_of(daemon));
}

// The host's jobs go on when it does. Nothing can promise that no other's job runs beside them
// then; it must not begin another.
void Cluster::stand_still(Daemon& daemon, Duration duration) {
  if (!daemon.is_up() || now < daemon.paused_until) return;
  daemon.paused_until = now + duration;
  daemon.is_standing = true;
  const Duration missed = local_time(daemon, now + duration) - local_time(daemon, now);
  for (auto* deadlines : {&daemon.lease_until, &daemon.trusted_until}) {
    for (auto& [partition, deadline] : *deadlines) {
      if (deadline == Instant::max()) continue;
      const Instant local = local_time(daemon, deadline);
      daemon.stood_still += missed;
      deadline = true_time(daemon, local);
      daemon.stood_still -= missed;
    }
  }
  daemon.stood_still += missed;
  for (auto& [id, job] : daemon.jobs) {
    job.stood_still = true;
    for (Instant* end : {&job.ends, &job.dies}) {
      if (*end != Instant::max()) *end += duration;
    }
  }
}

void Cluster::set_wall_right(Daemon& daemon) {
  const auto missed = std::chrono::ceil<std::chrono::milliseconds>(daemon.stood_still);
  daemon.wall_offset += missed - std::exchange(daemon.wall_missed, missed);
  daemon.is_standing = false;
}

WallClockRead Cluster::clock_of(const Daemon& daemon) const {
  return {wall_of(daemon, now), local_time(daemon, now)};
}

Instant Cluster::local_time(const Daemon& daemon, Instant at) {
  return at + (at - kStart) * daemon.drift / 10'000 - daemon.stood_still;
}

Instant Cluster::true_time(const Daemon& daemon, Instant local) {
  if (local == Instant::max() || local == Instant::min()) return local;
  local += daemon.stood_still;
  if (daemon.drift == 0) return local;
  const Duration since = local - kStart;
  Instant at = kStart + since / (10'000 + daemon.drift) * 10'000;
  const auto read = [&] { return local_time(daemon, at) + daemon.stood_still; };
  while (read() < local) at += std::max(local - read(), Duration{1});
  return at;
}

}  // namespace lictor::core::test
