#pragma once

// Time zones of the IANA database, as the system's tzdata has them, read by CCTZ.
//
// A zone is read when it is asked for. An updated tzdata is used once Zones::forget() was called,
// as on a reload of the configuration; no restart and no network are needed.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cctz/time_zone.h>

#include "lictor/result.h"

namespace lictor::schedule {

/// An instant to the second.
using Tick = std::chrono::sys_seconds;

/// The instants that zones, and so schedules, know: the years 1 to 9999.
inline constexpr Tick kFirstTick{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};
inline constexpr Tick kLastTick{std::chrono::sys_days{std::chrono::year{10000} / 1 / 1} -
                                std::chrono::seconds{1}};

/// The offsets of a zone's wall clock over time. Immutable; any thread may read it.
class Zone {
 public:
  /// UTC.
  Zone() = default;
  explicit Zone(cctz::time_zone zone) : zone_(zone) {}

  /// A span of time in which the clock is not changed: it shows UTC plus `offset` in [begin, end).
  /// The spans before and after may have the same offset.
  struct Period {
    Tick begin;
    Tick end;
    std::chrono::seconds offset;
  };
  /// The period that `at` lies in. The first one begins at Tick::min(), the last one, some 400
  /// years after the last change that tzdata lists by date, ends at Tick::max().
  [[nodiscard]] Period period_at(Tick at) const;

 private:
  cctz::time_zone zone_;
};

/// The zones of the system by name, each read once. Not thread-safe.
class Zones {
 public:
  explicit Zones(std::string folder = "/usr/share/zoneinfo") : folder_(std::move(folder)) {}

  /// "Europe/Rome". "UTC" and "" need no file. Blocks for a small file. Errors: kInvalid, there is
  /// no such zone, with the nearest name if one is near; or its file cannot be read.
  [[nodiscard]] Result<std::shared_ptr<const Zone>> find(std::string_view name);
  /// The next find() reads the files again: tzdata may have been updated. Zones that were given out
  /// before stay as they are.
  void forget() { zones_.clear(); }

 private:
  [[nodiscard]] std::string advice(std::string_view name) const;

  std::string folder_;
  std::map<std::string, std::shared_ptr<const Zone>, std::less<>> zones_;
};

}  // namespace lictor::schedule
