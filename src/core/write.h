#pragma once

// One thing that a queue wants written of a task.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/effect.h"

namespace lictor::core {

enum class Purpose { kClaim, kRetry, kGiveBack, kFinish, kBury, kMark, kPrune };

struct Write {
  Write() = default;
  Write(Purpose why, Op what, Rare<Claim> under)
      : purpose(why), op(std::make_shared<const Op>(std::move(what))), claim(std::move(under)) {}

  Purpose purpose = Purpose::kMark;
  std::shared_ptr<const Op> op;
  Rare<Claim> claim;  // that the task carries by then
};

/// The key that a write is about; empty for the marker.
[[nodiscard]] const std::string& key_of(const Op& op);
/// The ModifyIndex that its key must still have; 0: it must not be there.
[[nodiscard]] std::uint64_t expected_index(const Op& op);

/// What something takes up of a transaction, at most.
struct Cost {
  std::size_t operations = 0;
  std::size_t bytes = 0;

  Cost& operator+=(const Cost& more) {
    operations += more.operations;
    bytes += more.bytes;
    return *this;
  }
  Cost& operator-=(const Cost& less) {
    operations -= less.operations;
    bytes -= less.bytes;
    return *this;
  }
};

/// An operation in a transaction, beside names and values.
inline constexpr std::size_t kVerbBytes = 200;
/// The operation that each transaction begins with.
inline constexpr Cost kFenceCost{1, kVerbBytes};
[[nodiscard]] Cost cost_of(const Op& op);

}  // namespace lictor::core
