#pragma once

// Trying again: while Consul does not answer, or while others change the same key.

#include <chrono>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "lictor/result.h"

namespace lictor::client {

/// Whether a later try may succeed: Consul did not answer, or has no leader.
[[nodiscard]] inline bool is_temporary(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

inline void pause_before_retry() { std::this_thread::sleep_for(std::chrono::milliseconds{500}); }

/// Limits the tries by time.
class Patience {
 public:
  explicit Patience(Duration limit, Instant since = boot_now()) : until_(since + limit) {}

  [[nodiscard]] bool is_over() const { return boot_now() > until_; }
  /// Pauses before the next try. False, without a pause: the time is over.
  [[nodiscard]] bool pause() const {
    if (is_over()) return false;
    pause_before_retry();
    return true;
  }

 private:
  Instant until_;
};

/// Repeats a read-change-write of `key`. `change` returns its result, or nothing if the key changed
/// meanwhile. Errors: those of `change`; kConflict.
template <class Change>
auto retry_conflicts(const std::string& key, const Change& change) ->
    typename std::invoke_result_t<const Change&>::value_type {
  constexpr int kTries = 20;  // a try takes milliseconds; no key changes that often for long
  for (int i = 0; i < kTries; ++i) {
    if (auto result = change()) return *std::move(result);
  }
  return fail(ErrorCode::kConflict,
              printable(key) + " changed " + std::to_string(kTries) + " times in a row; try again");
}

}  // namespace lictor::client
