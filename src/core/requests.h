#pragma once

// For requests to the store: their ids, pauses between tries, one fact for each outage.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "core/effect.h"
#include "lictor/time.h"

namespace lictor::core {

/// The pause after a first error of Consul or the network.
inline constexpr Duration kRetryPause = std::chrono::milliseconds{500};
/// The pause after a refusal that only an operator can mend. A task whose claim was refused waits
/// for it too; meanwhile it blocks no other.
inline constexpr Duration kRefusedPause = std::chrono::seconds{5};

/// Where a blocking query goes on after a failure. Most failures are a connection closed on the
/// way, or a limit of Consul's that is reached: then the known state still holds.
class WatchFailures {
 public:
  /// Whether the index is still valid after one more failure.
  [[nodiscard]] bool keeps_index(bool over_limit) {
    return over_limit || !std::exchange(failed_, !failed_);
  }
  void over() { failed_ = false; }

 private:
  bool failed_ = false;  // of the last query
};

/// Numbers a queue's requests. An id is never used twice, so a late reply finds nobody waiting.
class Requests {
 public:
  [[nodiscard]] RequestId next() { return RequestId{++last_}; }

 private:
  std::uint64_t last_ = 0;
};

/// Cancels a request whose answer is not needed any more.
inline void cancel(RequestId& request, Effects& out) {
  if (request) out.emplace_back(CancelRequest{std::exchange(request, {})});
}

/// Reports failing requests: one fact for each error of an outage, not one for each try. If an
/// outage ends in a refusal, that is reported, too. The longer it lasts, the fewer tries are made.
class StoreTrouble {
 public:
  void report(const std::string& what, const std::string& error, Effects& out) {
    constexpr std::size_t kMost = 4;
    pause_ = std::min<Duration>(2 * pause_, kMostPause);
    std::string kind = error;
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    if (reported_.size() >= kMost ||
        std::find(reported_.begin(), reported_.end(), kind) != reported_.end())
      return;
    reported_.push_back(std::move(kind));
    out.emplace_back(Fact{Fact::Kind::kStoreTrouble, {}, what + ": " + error});
  }
  void over() {
    reported_.clear();
    pause_ = kRetryPause / 2;
  }
  /// Before the next try: half a second at first, five at most.
  [[nodiscard]] Duration pause() const { return std::max(pause_, kRetryPause); }

 private:
  static constexpr Duration kMostPause = kRefusedPause;

  Duration pause_ = kRetryPause / 2;
  std::vector<std::string> reported_;  // errors of this outage, without digits; a few
};

}  // namespace lictor::core
