#pragma once

// Tasks whose deletion was acknowledged, for as long as an answer that still shows them may come.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lictor/time.h"

namespace lictor::core {

class Tombstones {
 public:
  /// The task's last ModifyIndex was `index`; its deletion was acknowledged at `at`, which never
  /// falls from call to call.
  void add(const std::string& key, std::uint64_t index, Instant at) {
    indexes_[key] = {index, at};
    order_.emplace_back(at, key);
  }
  /// Whether that version is from before the deletion. A later one ends the tombstone.
  [[nodiscard]] bool covers(std::string_view key, std::uint64_t index) {
    const auto it = indexes_.find(key);
    if (it == indexes_.end()) return false;
    if (index <= it->second.first) return true;
    indexes_.erase(it);
    return false;
  }
  /// Of a task under this name, or was until covers() told of a later one.
  [[nodiscard]] bool has(std::string_view key) const { return indexes_.contains(key); }
  /// Whatever was asked before `time` has been answered.
  void forget_before(Instant time) {
    for (; !order_.empty() && order_.front().first < time; order_.pop_front()) {
      const auto it = indexes_.find(order_.front().second);
      if (it != indexes_.end() && it->second.second < time) indexes_.erase(it);
    }
  }
  void clear() {
    indexes_.clear();
    order_.clear();
  }
  [[nodiscard]] std::size_t size() const { return indexes_.size(); }

 private:
  std::map<std::string, std::pair<std::uint64_t, Instant>, std::less<>> indexes_;
  std::deque<std::pair<Instant, std::string>> order_;
};

}  // namespace lictor::core
