#pragma once

// Time zones of the IANA database, as the system's tzdata has them: TZif files (RFC 8536) below
// /usr/share/zoneinfo. The rule for later years at the end of a file counts too: it is all that
// "slim" files say of the present, and without it each zone would lose its summer time in 2038.
// (Debian's libdate-tz reads neither, which is why it is not used.)
//
// A zone is read when it is asked for. An updated tzdata is used once Zones::forget() was called,
// as on a reload of the configuration; no restart and no network are needed.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lictor/result.h"

namespace lictor::schedule {

/// An instant to the second.
using Tick = std::chrono::sys_seconds;

/// The instants that zones, and so schedules, know: the years 1 to 9999.
inline constexpr Tick kFirstTick{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};
inline constexpr Tick kLastTick{std::chrono::sys_days{std::chrono::year{10000} / 1 / 1} -
                                std::chrono::seconds{1}};

/// The rule by which a zone's clock is changed each year: POSIX's TZ, as it ends a TZif file.
///
///   CET-1CEST,M3.5.0,M10.5.0/3     UTC+1; UTC+2 from the last Sunday of March, 02:00, to the last
///                                  one of October, 03:00
///   <+0530>-5:30                   UTC+5:30 for ever
struct PosixRule {
  /// When on which day of a year the clock is changed, on the wall clock before the change.
  struct Day {
    enum class Kind {
      kWeekday,    // "M3.5.0": month, week (5: the last), weekday
      kJulian,     // "J60": from 1, without 29 February
      kZeroBased,  // "59": from 0
    };
    Kind kind = Kind::kZeroBased;
    unsigned month = 1;
    unsigned week = 1;
    unsigned number = 0;          // of the weekday, or of the day in the year
    std::chrono::seconds time{};  // from -167 to 167 hours

    [[nodiscard]] std::chrono::local_seconds in(std::chrono::year year) const;
  };

  std::chrono::seconds standard{};  // east of UTC
  bool has_summer = false;
  std::chrono::seconds summer{};
  Day summer_begin, summer_end;

  /// std::nullopt if it is no such text.
  [[nodiscard]] static std::optional<PosixRule> parse(std::string_view text);
};

/// How the wall clock of a zone runs. Immutable; any thread may read it.
class Zone {
 public:
  /// UTC.
  Zone() = default;
  /// Errors: kInvalid, `file` is no TZif file of version 2 or later, or counts leap seconds.
  [[nodiscard]] static Result<Zone> parse(std::string_view file);

  /// A span of time in which the clock is not changed: it shows UTC plus `offset` in [begin, end).
  /// The spans before and after may have the same offset.
  struct Period {
    Tick begin;
    Tick end;
    std::chrono::seconds offset;
  };
  /// The period that `at` lies in. The first one begins at kFirstTick or before, the last one ends
  /// after kLastTick.
  [[nodiscard]] Period period_at(Tick at) const;

 private:
  struct Change {
    Tick at;
    std::chrono::seconds offset;  // from then on
  };

  [[nodiscard]] Period period_by_rule(Tick at, const Change& last) const;

  std::vector<Change> changes_{{Tick::min(), std::chrono::seconds{0}}};  // never empty
  std::optional<PosixRule> rule_;  // of the years after the last of the changes
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
