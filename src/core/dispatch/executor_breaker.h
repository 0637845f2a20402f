#pragma once

// Executors whose jobs cannot be started here: memory is short, the program's folder is away, the
// receiver of an http executor refuses connections. That is not the task's fault and the next task
// would fail the same way. So this is not counted as an attempt.
//
//   (none) --not started--> paused --time--> probing --a job of it started--> (none)
//                             ^                 |
//                             +--not started----+   for twice as long
//
// No task of a paused executor is claimed, and one at a time of a probing one.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lictor/time.h"

namespace lictor::core {

class ExecutorBreaker {
 public:
  struct Pause {
    bool active = false;  // false: it is probing
    bool passed = false;  // the probe has run so long that others may follow
    Instant until{};      // the end of the last pause
    Duration wait{};
    std::string error;
    std::string suspect;  // the task whose job was last refused
    unsigned refusals = 0;
  };
  using Pauses = std::map<std::string, Pause, std::less<>>;

  /// Notes that a job of `executor` that began at `began` could not be started. Returns the new
  /// pause; null if the job began before the last one was over. During a pause no job begins.
  const Pause* failed(Instant now, Instant began, const std::string& executor, std::string error) {
    const auto [it, is_new] = pauses_.try_emplace(executor);
    Pause& pause = it->second;
    if (pause.wait > Duration::zero() && began < pause.until) return nullptr;
    const bool goes_on = pause.wait > Duration::zero() && began - pause.until <= pause.wait;
    pause.wait = goes_on ? std::min(2 * pause.wait, kLongest) : kFirst;
    pause.until = now + pause.wait;
    pause.error = std::move(error);
    pause.active = true;
    pause.passed = false;
    return &pause;
  }
  /// Notes that a job that began at `began` was started, which ends a probation.
  void started(std::string_view executor, Instant began) {
    const auto it = pauses_.find(executor);
    if (it == pauses_.end() || began < it->second.until) return;
    pauses_.erase(it);
  }
  /// The receiver refused the job of `task`. Returns whether that may still be the receiver's
  /// fault: not if this task was refused the last few times.
  bool is_spared(const std::string& executor, const std::string& task) {
    Pause& pause = pauses_[executor];
    if (pause.suspect != task) pause.refusals = 0;
    pause.suspect = task;
    if (++pause.refusals < kMostRefusals) return true;
    pause.refusals = 0;
    return false;
  }
  /// Ends the pauses that are over.
  void release(Instant now) {
    for (auto& [executor, pause] : pauses_) {
      if (pause.until <= now) pause.active = false;
    }
  }
  void clear() { pauses_.clear(); }

  /// The pause of an executor that is paused or probing; null: neither.
  [[nodiscard]] const Pause* find(std::string_view executor) const {
    const auto it = pauses_.find(executor);
    return it == pauses_.end() ? nullptr : &it->second;
  }
  /// The pause that ends first; null: no executor is paused.
  [[nodiscard]] const Pause* first() const {
    const Pause* first = nullptr;
    for (const auto& [executor, pause] : pauses_) {
      if (pause.active && (first == nullptr || pause.until < first->until)) first = &pause;
    }
    return first;
  }
  [[nodiscard]] bool empty() const { return pauses_.empty(); }
  [[nodiscard]] Pauses& all() { return pauses_; }
  [[nodiscard]] const Pauses& all() const { return pauses_; }

 private:
  static constexpr Duration kFirst = std::chrono::seconds{1};
  static constexpr Duration kLongest = std::chrono::seconds{60};
  static constexpr unsigned kMostRefusals = 5;  // 15 s, with the pauses between them

  Pauses pauses_;  // as many as there are executors, at most
};

}  // namespace lictor::core
