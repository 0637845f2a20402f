#pragma once

// Looks for what was rewritten in a list that is too long to be read whole at each change.
//
// The index that Consul gives with a prefix is the highest of what is, or was, below it
// (CONSUL-FACTS.md 4.2). So a part whose index is not above the one that everything was seen at has
// not changed since. A sweep reads the names of the whole; if its index moved on, the names of its
// parts, one by one, and so on; and the values of those parts alone that changed and are small.
// What was never seen has changed: of its parts that are small the names are not read again.

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
  /// What is to be read next, while it runs. Up to `keys_in_part` keys are read at once.
  [[nodiscard]] const Step& step(double keys_in_part);
  /// The answer to step(). Returns the keys that are to be read one by one.
  std::vector<std::string> accept(const TasksListed& reply, double keys_in_part);

 private:
  void split(const std::vector<std::string_view>& keys, std::vector<std::string>& single);

  std::vector<Step> steps_;  // the last is the next
  std::uint64_t seen_ = 0;
  std::uint64_t began_at_ = 0;
};

}  // namespace lictor::core
