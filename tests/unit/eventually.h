#pragma once

#include <chrono>
#include <thread>

namespace lictor::unit {

/// Far longer than anything here takes, also on a busy machine with sanitizers.
inline constexpr std::chrono::milliseconds kPatience{60'000};

/// Waits for other threads and processes to make it true. False if that did not happen within
/// kPatience.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace lictor::unit
