#pragma once

#include <chrono>

namespace lictor {

/// The clock of leases and time-outs: Linux's CLOCK_BOOTTIME. It never steps, and unlike
/// CLOCK_MONOTONIC it goes on while the machine sleeps, so a lease cannot outlive a suspended
/// virtual machine. It has no now(): code that decides gets the time as an argument.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;
};

using Instant = BootClock::time_point;
using Duration = std::chrono::nanoseconds;

/// Wall-clock time, as producers write it. Steps and differs from host to host.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace lictor
