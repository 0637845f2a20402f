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

// The facts that are counted, in the order of Activity's counts.
using Kind = core::Fact::Kind;
constexpr std::array kKinds{Kind::kStarted, Kind::kDone, Kind::kFailed, Kind::kDead};
constexpr std::array kNames{"started", "done", "failed", "dead"};

constexpr std::int64_t kSlotsPerMinute = 6;
constexpr std::int64_t kRecentMinutes = 5;

std::int64_t slot_now() { return boot_now().time_since_epoch() / 10s; }

// Upper bounds in ms; what is above the last counts as the last.
constexpr std::array<std::int64_t, 18> kDelays{
    1,     2,     5,     10,     20,     50,     100,     200,       500,
    1'000, 2'000, 5'000, 10'000, 30'000, 60'000, 300'000, 1'800'000, 7'200'000};

// Rounds up to the next bound.
std::size_t bucket_of(Duration delay) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  const auto it = std::lower_bound(kDelays.begin(), kDelays.end(), ms);
  return std::min<std::size_t>(static_cast<std::size_t>(it - kDelays.begin()), kDelays.size() - 1);
}

// The bound below which `share` of all lie; null without any.
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

// `late` is the time since executeAt or the retry's time, where the task has one; else `waited`
// counts from when the task was due and known.
void Activity::on_fact(const std::string& queue, const core::Fact& fact) {
  const auto kind = std::find(kKinds.begin(), kKinds.end(), fact.kind);
  if (kind == kKinds.end()) return;
  const std::int64_t now = slot_now();
  const std::lock_guard lock{mutex_};
  OfQueue& of_queue = queues_[queue];
  Slot& slot = of_queue.slots[static_cast<std::size_t>(now) % kSlots];
  if (slot.number != now) slot = {now, {}, {}};
  const auto number = static_cast<std::size_t>(kind - kKinds.begin());
  ++slot.counts[number];
  count_type(of_queue, fact, number, now / kSlotsPerMinute);
  if (fact.kind == Kind::kStarted) {
    ++slot.delays[bucket_of(std::max(Duration::zero(), fact.late.value_or(fact.waited)))];
  }
}

void Activity::count_type(OfQueue& of_queue, const core::Fact& fact, std::size_t kind,
                          std::int64_t minute) {
  if (fact.kind == Kind::kStarted || !fact.task) return;
  const std::string& type = fact.task->type;
  auto at = of_queue.types.find(type);
  if (at == of_queue.types.end()) {
    if (of_queue.types.size() >= kMostTypes) return;
    at = of_queue.types.try_emplace(type).first;
  }
  TypeMinute& counted = at->second[static_cast<std::size_t>(minute) % kMinutes];
  if (counted.number != minute) counted = {minute, {}, 0, 0};
  ++counted.counts[kind];
  if (fact.kind != Kind::kDone) return;  // of a failure `took` is the time to the next attempt
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(fact.took).count();
  counted.took_ms += ms;
  counted.longest_ms = std::max(counted.longest_ms, ms);
}

ordered_json Activity::by_type(const std::string& queue) const {
  const std::int64_t now = slot_now() / kSlotsPerMinute;
  ordered_json out = ordered_json::object();
  const std::lock_guard lock{mutex_};
  const auto it = queues_.find(queue);
  if (it == queues_.end()) return out;
  for (const auto& [type, minutes] : it->second.types) {
    std::array<std::uint64_t, kCounts> counts{};
    std::uint64_t recent = 0;
    std::int64_t took_ms = 0, longest_ms = 0;
    for (const TypeMinute& minute : minutes) {
      const std::int64_t age = now - minute.number;
      if (minute.number < 0 || age >= static_cast<std::int64_t>(kMinutes)) continue;
      for (std::size_t i = 1; i < kCounts; ++i) {
        counts[i] += minute.counts[i];
        if (age < kRecentMinutes) recent += minute.counts[i];
      }
      took_ms += minute.took_ms;
      longest_ms = std::max(longest_ms, minute.longest_ms);
    }
    if (counts[1] + counts[2] + counts[3] == 0) continue;
    ordered_json& figures = out[type];
    for (std::size_t i = 1; i < kCounts; ++i) figures[kNames[i]] = counts[i];
    figures["recent"] = recent;
    figures["took_ms"] = took_ms;
    figures["longest_ms"] = longest_ms;
  }
  return out;
}

// Sums up under the mutex, and builds the JSON without it: on_fact() is on the loop's thread.
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
      for (const Slot& slot : it->second.slots) {
        // The minute under way is the last; minutes begin where the clock's do.
        const std::int64_t age = now / kSlotsPerMinute - slot.number / kSlotsPerMinute;
        if (slot.number < 0 || age >= static_cast<std::int64_t>(kMinutes)) continue;
        Minute& minute = minutes[kMinutes - 1 - static_cast<std::size_t>(age)];
        for (std::size_t i = 0; i < kCounts; ++i) {
          minute.counts[i] += slot.counts[i];
          if (now - slot.number < kSlotsPerMinute) last[i] += slot.counts[i];
        }
        for (std::size_t i = 0; i < kBuckets; ++i) minute.delays[i] += slot.delays[i];
      }
    }
  }
  ordered_json out{{"minutes", kMinutes}};
  for (std::size_t i = 0; i < kCounts; ++i) {
    ordered_json& list = out[kNames[i]] = ordered_json::array();
    for (const Minute& minute : minutes) list.push_back(minute.counts[i]);
  }
  for (const auto& [name, share] : {std::pair{"delay_p50_ms", 0.5}, {"delay_p99_ms", 0.99}}) {
    ordered_json& list = out[name] = ordered_json::array();
    for (const Minute& minute : minutes) list.push_back(quantile(minute.delays, share));
  }
  for (std::size_t i = 0; i < kCounts; ++i) out["last_minute"][kNames[i]] = last[i];
  return out;
}

}  // namespace lictor::admin
