#pragma once

// Finds rewritten tasks in a list that is too long to read whole at each change.
//
// Consul's index of a prefix is the highest ModifyIndex of all keys that are, or were, below it
// (CONSUL-FACTS.md 4.2). So a part has not changed if its index is not above the one as of which
// everything was seen. A sweep reads the names of the whole list; if its index rose, the names of
// its parts, and so on; and the values of small parts that changed. A part that was never seen
// counts as changed: if it is small, its values are read without its names.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"

namespace lictor::core {

class Sweep {
 public:
  struct Step {
    std::string below;      // a prefix of keys; empty: the whole
    bool full = false;      // with values
    std::size_t count = 0;  // of keys, when they were last listed; 0: not known
  };

  /// Everything was seen as of this index.
  void seen(std::uint64_t index) { seen_ = index; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

  void start();
  void stop() { steps_.clear(); }
  [[nodiscard]] bool running() const { return !steps_.empty(); }
  /// What to read next, while it runs. Up to `keys_in_part` keys are read at once.
  [[nodiscard]] const Step& step(double keys_in_part);
  /// The answer to step(). Returns the keys to read one by one.
  std::vector<std::string> accept(const TasksListed& reply, double keys_in_part);

 private:
  void split(const std::vector<std::string_view>& keys, std::vector<std::string>& single);

  std::vector<Step> steps_;  // the last is the next
  std::uint64_t seen_ = 0;
  std::uint64_t began_at_ = 0;
};

}  // namespace lictor::core
