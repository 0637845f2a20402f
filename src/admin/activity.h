#pragma once

// The last hour of this daemon's queues, minute by minute, for the charts of the web page, which
// has no Prometheus behind it.
//
//   on_fact() --> minute of now, in a ring of 60 of the queue and one of the type --> json()
//                                                                              \-> by_type()
//
// A slot of the ring bears the number of its minute. A slot of an earlier lap has another number:
// the first fact of the new time clears it, and a reader leaves it out. So no timer moves the
// window, and an idle queue costs nothing.
//
// Delays are counted in 18 buckets and given as the upper bound of the bucket that holds the
// quantile: exact enough for a chart, and the same size whatever happens.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "lictor/time.h"
#include "runtime/observer.h"

namespace lictor::admin {

/// Counts the work of this daemon in the last hour, for the page. Thread safe; 7 kB a queue and for
/// each of its types.
class Activity : public runtime::Observer {
 public:
  void on_fact(const std::string& queue, const core::Fact& fact) override;

  /// {"minutes": 60, "started": [...], "done": [...], "failed": [...], "dead": [...],
  ///  "delay_p50_ms": [...], "delay_p99_ms": [...],
  ///  "last_minute": {"started", "done", "failed", "dead"}}
  /// Each list has a value a minute, the oldest first, the minute under way last. The delay is the
  /// time from when a task was due to its start; null in a minute without a start. "last_minute"
  /// includes a part of the minute before this one.
  [[nodiscard]] nlohmann::ordered_json json(const std::string& queue) const;
  /// {"Mail": {"done", "failed", "dead", "recent", "took_ms", "longest_ms"}}
  /// Counts the attempts that ended in the last hour; "recent": all of the last five minutes.
  /// "took_ms" is the time of all successful jobs, "longest_ms" the time of the longest.
  [[nodiscard]] nlohmann::ordered_json by_type(const std::string& queue) const;

 private:
  static constexpr std::size_t kMinutes = 60;
  static constexpr std::size_t kBuckets = 18;     // of delay
  static constexpr std::size_t kCounts = 4;       // started, done, failed, dead
  static constexpr std::size_t kMostTypes = 100;  // producers invent types without end
  struct Minute {
    std::int64_t number = -1;  // since the daemon's clock began
    std::array<std::uint32_t, kCounts> counts{};
    std::array<std::uint32_t, kBuckets> delays{};
    std::int64_t took_ms = 0, longest_ms = 0;
  };
  using Hour = std::array<Minute, kMinutes>;
  struct OfQueue {
    Hour all;
    std::map<std::string, Hour, std::less<>> types;
  };
  static void count(Hour& hour, std::int64_t minute, std::size_t kind, const core::Fact& fact);

  mutable std::mutex mutex_;
  std::map<std::string, OfQueue, std::less<>> queues_;
};

}  // namespace lictor::admin
