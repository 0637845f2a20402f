#pragma once

// Executors whose jobs this host could not even start: for want of memory, say, or of a directory
// that somebody removed. That is no fault of the tasks, so it is no attempt; and the next task
// would fare no better, so none is claimed for a while, which doubles until one starts.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lictor/time.h"

namespace lictor::core {

class StartHolds {
 public:
  struct Hold {
    bool active = false;
    Instant until{};  // of the last one, when it is over
    Duration wait{};
    std::string error;
  };

  /// A job of `executor` could not be started. Nothing: it is held for that already.
  const Hold* failed(Instant now, const std::string& executor, std::string error) {
    Hold& hold = holds_[executor];
    if (hold.active) return nullptr;
    const bool goes_on = hold.wait > Duration::zero() && now - hold.until <= hold.wait;
    hold.wait = goes_on ? std::min(2 * hold.wait, kLongest) : kFirst;
    hold.until = now + hold.wait;
    hold.error = std::move(error);
    hold.active = true;
    ++active_;
    return &hold;
  }
  /// One was started.
  void started(std::string_view executor) {
    const auto it = holds_.find(executor);
    if (it != holds_.end() && !it->second.active) holds_.erase(it);
  }
  /// Returns whether a hold is over.
  bool release(Instant now) {
    if (active_ == 0) return false;
    const std::size_t before = active_;
    for (auto& [executor, hold] : holds_) {
      if (!hold.active || hold.until > now) continue;
      hold.active = false;
      --active_;
    }
    return active_ != before;
  }
  void clear() {
    holds_.clear();
    active_ = 0;
  }

  [[nodiscard]] bool any() const { return active_ != 0; }
  [[nodiscard]] const Hold* find(std::string_view executor) const {
    const auto it = holds_.find(executor);
    return it == holds_.end() || !it->second.active ? nullptr : &it->second;
  }
  /// The one that is over first; there must be one.
  [[nodiscard]] const Hold& first() const {
    const Hold* first = nullptr;
    for (const auto& [executor, hold] : holds_) {
      if (hold.active && (first == nullptr || hold.until < first->until)) first = &hold;
    }
    return *first;
  }
  [[nodiscard]] bool empty() const { return holds_.empty(); }

 private:
  static constexpr Duration kFirst = std::chrono::seconds{1};
  static constexpr Duration kLongest = std::chrono::seconds{60};

  std::map<std::string, Hold, std::less<>> holds_;  // as many as there are executors, at most
  std::size_t active_ = 0;
};

}  // namespace lictor::core
