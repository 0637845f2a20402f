#include "admin/activity.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

// What is counted, in the order of Activity's counts.
using Kind = core::Fact::Kind;
constexpr std::array kKinds{Kind::kStarted, Kind::kDone, Kind::kFailed, Kind::kDead};
constexpr std::array kNames{"started", "done", "failed", "dead"};

constexpr std::int64_t kMinutes = 60;
constexpr std::int64_t kSlotsPerMinute = 6;

std::int64_t slot_now() { return boot_now().time_since_epoch() / 10s; }

// Upper bounds in ms; what is above the last counts as the last.
constexpr std::array<std::int64_t, 18> kDelays{
    1,     2,     5,     10,     20,     50,     100,     200,       500,
    1'000, 2'000, 5'000, 10'000, 30'000, 60'000, 300'000, 1'800'000, 7'200'000};

std::size_t bucket_of(Duration delay) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  const auto it = std::lower_bound(kDelays.begin(), kDelays.end(), ms);
  return std::min<std::size_t>(static_cast<std::size_t>(it - kDelays.begin()), kDelays.size() - 1);
}

template <class Buckets>
ordered_json quantile(const Buckets& buckets, double share) {
  std::uint64_t all = 0;
  for (const auto count : buckets) all += count;
  if (all == 0) return nullptr;
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(all - 1)) + 1;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen >= wanted) return kDelays[i];
  }
  return kDelays.back();
}

}  // namespace

void Activity::on_fact(const std::string& queue, const core::Fact& fact) {
  const auto kind = std::find(kKinds.begin(), kKinds.end(), fact.kind);
  if (kind == kKinds.end()) return;
  const std::int64_t now = slot_now();
  const std::lock_guard lock{mutex_};
  Slot& slot = queues_[queue][static_cast<std::size_t>(now) % kSlots];
  if (slot.number != now) slot = {now, {}, {}};
  ++slot.counts[static_cast<std::size_t>(kind - kKinds.begin())];
  if (fact.kind == Kind::kStarted) {
    ++slot.delays[bucket_of(std::max(Duration::zero(), fact.late.value_or(fact.waited)))];
  }
}

ordered_json Activity::json(const std::string& queue) const {
  const std::int64_t now = slot_now();
  struct Minute {
    std::array<std::uint64_t, kCounts> counts{};
    std::array<std::uint64_t, kBuckets> delays{};
  };
  std::array<Minute, kMinutes> minutes{};
  std::array<std::uint64_t, kCounts> last{};
  {
    const std::lock_guard lock{mutex_};
    const auto it = queues_.find(queue);
    if (it != queues_.end()) {
      for (const Slot& slot : it->second) {
        // The minute under way is the last; minutes begin where the clock's do.
        const std::int64_t age = now / kSlotsPerMinute - slot.number / kSlotsPerMinute;
        if (slot.number < 0 || age >= kMinutes) continue;
        Minute& minute = minutes[static_cast<std::size_t>(kMinutes - 1 - age)];
        for (std::size_t i = 0; i < kCounts; ++i) {
          minute.counts[i] += slot.counts[i];
          if (now - slot.number < kSlotsPerMinute) last[i] += slot.counts[i];
        }
        for (std::size_t i = 0; i < kBuckets; ++i) minute.delays[i] += slot.delays[i];
      }
    }
  }
  ordered_json told{{"minutes", kMinutes}};
  for (std::size_t i = 0; i < kCounts; ++i) {
    ordered_json& list = told[kNames[i]] = ordered_json::array();
    for (const Minute& minute : minutes) list.push_back(minute.counts[i]);
  }
  for (const auto& [name, share] : {std::pair{"delay_p50_ms", 0.5}, {"delay_p99_ms", 0.99}}) {
    ordered_json& list = told[name] = ordered_json::array();
    for (const Minute& minute : minutes) list.push_back(quantile(minute.delays, share));
  }
  for (std::size_t i = 0; i < kCounts; ++i) told["last_minute"][kNames[i]] = last[i];
  return told;
}

}  // namespace lictor::admin
