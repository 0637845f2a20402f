#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.h"
#include "lictor/time.h"

namespace lictor::client {

/// Ids that are unique and, compared as text, in the order in which they were made, also within
/// one millisecond: `019aa2f4c31e-4f0b9d8e77a2c315`, milliseconds since the epoch and chance.
class TaskIds {
 public:
  explicit TaskIds(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::string next(WallTime now);

 private:
  Random random_;
  std::uint64_t last_ms_ = 0;
  std::uint64_t last_bits_ = 0;
};

/// What is wrong with `key` as a KV key that any HTTP client shall be able to reach; empty:
/// nothing. Consul answers 301 to "//", "." and ".." segments and a leading "/", and 400 to
/// characters that cannot be printed (CONSUL-FACTS.md 9.2).
[[nodiscard]] std::string key_fault(std::string_view key);

/// What is wrong with `id` as the id of a new task; empty: nothing.
[[nodiscard]] std::string task_id_fault(std::string_view id);

}  // namespace lictor::client
