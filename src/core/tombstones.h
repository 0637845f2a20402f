#pragma once

// Tasks whose deletion was acknowledged, for as long as an answer that still shows them may come.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lictor/time.h"

namespace lictor::core {

class Tombstones {
 public:
  /// The task's last ModifyIndex was `index`; its deletion was acknowledged at `at`, which never
  /// falls from call to call.
  void add(const std::string& key, std::uint64_t index, Instant at) {
    auto& [name, stone] = *stones_.try_emplace(key).first;
    stone.index = index;
    ++stone.deletions;
    order_.emplace_back(at, &name);
  }
  /// Whether that version is from before the deletion. A later one ends the tombstone.
  [[nodiscard]] bool covers(std::string_view key, std::uint64_t index) {
    const auto it = stones_.find(key);
    if (it == stones_.end() || !it->second.index) return false;
    if (index <= *it->second.index) return true;
    it->second.index.reset();
    return false;
  }
  /// Of a task under this name, or was until covers() told of a later one.
  [[nodiscard]] bool has(std::string_view key) const {
    const auto it = stones_.find(key);
    return it != stones_.end() && it->second.index;
  }
  /// Whatever was asked before `time` has been answered.
  void forget_before(Instant time) {
    for (; !order_.empty() && order_.front().first < time; order_.pop_front()) {
      const auto stone = stones_.find(*order_.front().second);
      if (--stone->second.deletions == 0) stones_.erase(stone);
    }
  }
  void clear() {
    stones_.clear();
    order_.clear();
  }
  [[nodiscard]] std::size_t size() const { return stones_.size(); }

 private:
  struct Stone {
    std::optional<std::uint64_t> index;  // none: a later version was seen
    std::size_t deletions = 0;           // in order_
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  std::unordered_map<std::string, Stone, Hash, std::equal_to<>> stones_;
  std::deque<std::pair<Instant, const std::string*>> order_;  // keys of stones_
};

}  // namespace lictor::core
