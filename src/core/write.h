#pragma once

// One thing that a queue wants written of a task.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/effect.h"

namespace lictor::core {

enum class Purpose { kClaim, kRetry, kGiveBack, kFinish, kBury, kMark, kPrune };

struct Write {
  Write() = default;
  Write(Purpose why, Op what, SharedOptional<Claim> under)
      : purpose(why), op(std::make_shared<const Op>(std::move(what))), claim(std::move(under)) {}

  Purpose purpose = Purpose::kMark;
  std::shared_ptr<const Op> op;
  SharedOptional<Claim> claim;  // that the task carries by then
};

/// Nothing depends on these: what is doubtful about them is let go, or done again.
[[nodiscard]] inline bool is_minor(Purpose purpose) {
  return purpose == Purpose::kMark || purpose == Purpose::kPrune;
}

/// The key that a write is about; empty for the marker.
[[nodiscard]] const std::string& key_of(const Op& op);
/// The ModifyIndex that its key must still have; 0: it must not be there.
[[nodiscard]] std::uint64_t expected_index(const Op& op);

}  // namespace lictor::core
