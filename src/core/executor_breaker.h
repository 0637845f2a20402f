#pragma once

// Executors whose jobs this host could not start, for lack of memory or because a directory was
// removed. That is not the task's fault, so it is not counted as an attempt. The next task would
// fail the same way, so none is claimed during a pause, which doubles until a job starts.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "lictor/time.h"

namespace lictor::core {

class ExecutorBreaker {
 public:
  struct Pause {
    bool active = false;
    Instant until{};  // of the last one, when it is over
    Duration wait{};
    std::string error;
  };

  /// A job of `executor` could not be started. Returns the new pause; nothing if one is running.
  const Pause* failed(Instant now, const std::string& executor, std::string error) {
    Pause& pause = pauses_[executor];
    if (pause.active) return nullptr;
    const bool goes_on = pause.wait > Duration::zero() && now - pause.until <= pause.wait;
    pause.wait = goes_on ? std::min(2 * pause.wait, kLongest) : kFirst;
    pause.until = now + pause.wait;
    pause.error = std::move(error);
    pause.active = true;
    ++active_;
    return &pause;
  }
  /// One was started.
  void started(std::string_view executor) {
    const auto it = pauses_.find(executor);
    if (it != pauses_.end() && !it->second.active) pauses_.erase(it);
  }
  /// Returns whether a pause is over.
  bool release(Instant now) {
    if (active_ == 0) return false;
    const std::size_t before = active_;
    for (auto& [executor, pause] : pauses_) {
      if (!pause.active || pause.until > now) continue;
      pause.active = false;
      --active_;
    }
    return active_ != before;
  }
  void clear() {
    pauses_.clear();
    active_ = 0;
  }

  [[nodiscard]] bool any() const { return active_ != 0; }
  [[nodiscard]] const Pause* find(std::string_view executor) const {
    const auto it = pauses_.find(executor);
    return it == pauses_.end() || !it->second.active ? nullptr : &it->second;
  }
  /// The pause that ends first; there must be one.
  [[nodiscard]] const Pause& first() const {
    const Pause* first = nullptr;
    for (const auto& [executor, pause] : pauses_) {
      if (pause.active && (first == nullptr || pause.until < first->until)) first = &pause;
    }
    LICTOR_ASSERT(first != nullptr);
    return *first;
  }
  [[nodiscard]] bool empty() const { return pauses_.empty(); }

 private:
  static constexpr Duration kFirst = std::chrono::seconds{1};
  static constexpr Duration kLongest = std::chrono::seconds{60};

  std::map<std::string, Pause, std::less<>> pauses_;  // as many as there are executors, at most
  std::size_t active_ = 0;
};

}  // namespace lictor::core
