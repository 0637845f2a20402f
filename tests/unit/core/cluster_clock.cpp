// The clocks of the cluster's hosts: they drift, are set, and stand still with their host.

#include <algorithm>
#include <utility>

#include "cluster.h"

namespace lictor::core::test {

void Cluster::step_clock(Daemon& daemon, std::chrono::milliseconds by) {
  if (by == std::chrono::milliseconds::zero()) return;
  daemon.clock_stepped = true;
  daemon.wall_offset += by;
  // The clock is read to the millisecond, so that a step of 10 ms may look like one of 9, which is
  // taken for drift.
  if (by > 10ms || by < -10ms) daemon.stepped_at = now;
  if (daemon.queue && !daemon.is_standing) tell(daemon, clock_of(daemon));
}

// What it has begun goes on when its host does. That no other's job runs beside it then, nothing
// can promise: it is not to begin another.
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
