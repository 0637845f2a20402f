#pragma once

// The partition of a queue that a task belongs to (partitions.md). Every host and every version
// must agree, so the mapping may not change; the unit test has test vectors.

#include <cstdint>
#include <string_view>

#include "base/siphash.h"

namespace lictor::core {

/// The bytes 00, 01, ... 0f. Not secret: a producer that chooses ids could put all tasks into one
/// partition, but could also give them all one serialKey.
inline constexpr SipKey kPartitionKey{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};

/// The most partitions of a queue.
inline constexpr std::uint32_t kMostPartitions = 256;

/// Partition `number` of a queue with `count` partitions.
struct Partition {
  std::uint32_t count = 1;
  std::uint32_t number = 0;

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// From 0 to below `partitions`: SipHash-2-4 of the text's UTF-8 bytes, modulo `partitions`.
[[nodiscard]] constexpr std::uint32_t partition_of(std::string_view text,
                                                   std::uint32_t partitions) {
  if (partitions <= 1) return 0;
  return static_cast<std::uint32_t>(siphash<2, 4>(kPartitionKey, text) % partitions);
}

/// The partition of a task: by its serialKey, so that tasks of one key stay in order, or by its id
/// if `serial_key` is empty.
[[nodiscard]] constexpr std::uint32_t partition_of(std::string_view serial_key, std::string_view id,
                                                   std::uint32_t partitions) {
  return partition_of(serial_key.empty() ? id : serial_key, partitions);
}

}  // namespace lictor::core
