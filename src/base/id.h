#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lictor {

/// A number that cannot be mixed up with another kind of number. Zero means none.
template <class Tag>
struct Id {
  std::uint64_t value = 0;

  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using RequestId = Id<struct RequestTag>;  ///< one request to the store
using AttemptId = Id<struct AttemptTag>;  ///< one run of one task, unique within a daemon's life

}  // namespace lictor

template <class Tag>
struct std::hash<lictor::Id<Tag>> {
  std::size_t operator()(lictor::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
