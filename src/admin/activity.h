#pragma once

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

/// What this daemon did in the last hour, for the charts of the page. Thread safe; 30 kB a queue.
class Activity : public runtime::Observer {
 public:
  void on_fact(const std::string& queue, const core::Fact& fact) override;

  /// {"minutes": 60, "started": [...], "done": [...], "failed": [...], "dead": [...],
  ///  "delay_p50_ms": [...], "delay_p99_ms": [...],
  ///  "last_minute": {"started", "done", "failed", "dead"}}
  /// Each list has a value a minute, the oldest first, the minute that is under way last. The delay is
  /// the time from when a task was due to its start; null in a minute without a start.
  [[nodiscard]] nlohmann::ordered_json json(const std::string& queue) const;

 private:
  static constexpr std::size_t kSlots = 366;   // of ten seconds; an hour and the minute under way
  static constexpr std::size_t kBuckets = 18;  // of delay
  static constexpr std::size_t kCounts = 4;    // started, done, failed, dead
  struct Slot {
    std::int64_t number = -1;  // of ten seconds since the daemon's clock began
    std::array<std::uint32_t, kCounts> counts{};
    std::array<std::uint32_t, kBuckets> delays{};
  };
  using Slots = std::array<Slot, kSlots>;

  mutable std::mutex mutex_;
  std::map<std::string, Slots, std::less<>> queues_;
};

}  // namespace lictor::admin
