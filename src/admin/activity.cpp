#include "admin/activity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
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

constexpr std::int64_t kRecentMinutes = 5;

std::int64_t minute_of(Instant time) { return time.time_since_epoch() / 1min; }

// Upper bounds in ms; longer delays count as the last.
constexpr std::array<std::int64_t, 18> kDelays{
    1,     2,     5,     10,     20,     50,     100,     200,       500,
    1'000, 2'000, 5'000, 10'000, 30'000, 60'000, 300'000, 1'800'000, 7'200'000};

// Rounds up to the next bound.
std::size_t bucket_of(Duration delay) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
  const auto it = std::lower_bound(kDelays.begin(), kDelays.end(), ms);
  return std::min<std::size_t>(static_cast<std::size_t>(it - kDelays.begin()), kDelays.size() - 1);
}

// The bound below which `share` of all delays lie; null: there are none.
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

// Uses `late`, the time since executeAt or the retry's time, if the task has one. Otherwise uses
// `waited`, which counts from when the task was due and known.
void Activity::count(Hour& hour, std::int64_t minute, std::size_t kind, const core::Fact& fact) {
  Minute& counted = hour[static_cast<std::size_t>(minute) % kMinutes];
  if (counted.number != minute) {
    counted = {};
    counted.number = minute;
  }
  ++counted.counts[kind];
  if (fact.kind == Kind::kStarted) {
    ++counted.delays[bucket_of(std::max(Duration::zero(), fact.late.value_or(fact.waited)))];
  }
  if (fact.kind != Kind::kDone) return;  // for a failure `took` is the time to the next attempt
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(fact.took).count();
  counted.took_ms += ms;
  counted.longest_ms = std::max(counted.longest_ms, ms);
}

void Activity::on_fact(const std::string& queue, const core::Fact& fact) {
  const auto kind = std::find(kKinds.begin(), kKinds.end(), fact.kind);
  if (kind == kKinds.end()) return;
  const auto number = static_cast<std::size_t>(kind - kKinds.begin());
  const std::int64_t minute = minute_of(boot_now());
  const std::lock_guard lock{mutex_};
  OfQueue& of_queue = queues_[queue];
  count(of_queue.all, minute, number, fact);
  if (fact.kind == Kind::kStarted || !fact.task) return;  // types count ended attempts
  const std::string& type = fact.task->type;
  if (of_queue.types.size() >= kMostTypes && !of_queue.types.contains(type)) return;
  count(of_queue.types[type], minute, number, fact);
}

ordered_json Activity::by_type(const std::string& queue) const {
  const std::int64_t now = minute_of(boot_now());
  ordered_json out = ordered_json::object();
  const std::lock_guard lock{mutex_};
  const auto it = queues_.find(queue);
  if (it == queues_.end()) return out;
  for (const auto& [type, minutes] : it->second.types) {
    std::array<std::uint64_t, kCounts> counts{};
    std::uint64_t recent = 0;
    std::int64_t took_ms = 0, longest_ms = 0;
    for (const Minute& minute : minutes) {
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

// Copies under the mutex, and builds the JSON without it: on_fact() is on the loop's thread.
ordered_json Activity::json(const std::string& queue) const {
  Hour ring{};
  {
    const std::lock_guard lock{mutex_};
    const auto it = queues_.find(queue);
    if (it != queues_.end()) ring = it->second.all;
  }
  const Instant now = boot_now();  // read after the copy, in which no minute is later then
  Hour minutes{};                  // the last one is still under way
  for (const Minute& minute : ring) {
    const std::int64_t age = minute_of(now) - minute.number;
    if (minute.number < 0 || age >= static_cast<std::int64_t>(kMinutes)) continue;
    minutes[kMinutes - 1 - static_cast<std::size_t>(age)] = minute;
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
  // The part of the minute before this one that is not older than a minute.
  const double part =
      1 - std::chrono::duration<double, std::ratio<60>>(now.time_since_epoch() % 1min).count();
  for (std::size_t i = 0; i < kCounts; ++i) {
    out["last_minute"][kNames[i]] =
        minutes[kMinutes - 1].counts[i] + std::llround(part * minutes[kMinutes - 2].counts[i]);
  }
  return out;
}

}  // namespace lictor::admin
