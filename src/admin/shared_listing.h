#pragma once

// What a queue has in Consul, read once for all who look at lists.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::admin {

/// When a listing was read.
struct ListingStamp {
  WallTime at{};  ///< the reading began then
  Duration took{};
  std::uint64_t number = 0;  ///< no two listings of one kind have the same
};

/// Lists when somebody asks, and at most for a fiftieth of the time: a queue of 100,000 tasks takes a
/// second to list. `Listing` is a ListingStamp with what was read. Thread safe.
template <class Listing>
class SharedListing {
 public:
  using Pointer = std::shared_ptr<const Listing>;
  /// Reads Consul; may leave the stamp alone.
  using Read = std::function<Result<Listing>()>;

  explicit SharedListing(Read read) : read_(std::move(read)) {}

  /// Blocks while Consul is asked, by this or another thread. `newer_than`: the listing must begin
  /// after this time, if the pace allows. Errors: those of the reading.
  [[nodiscard]] Result<Pointer> get(WallTime newer_than = WallTime::min()) {
    const Instant asked_at = boot_now();
    const std::lock_guard lock{mutex_};
    used_at_ = boot_now();
    // Callers that waited for the same reading share its error: a silent Consul delays each once.
    if (failure_ && failed_at_ >= asked_at) return tl::unexpected(*failure_);
    failure_.reset();
    if (newest_) {
      const Duration fresh = newest_->at < newer_than ? kFreshAsked : kFresh;
      if (used_at_ - listed_at_ < std::max(fresh, newest_->took * kPace)) return newest_;
    }
    const WallTime at = wall_now();
    auto listing = read_();
    if (!listing) {
      failure_ = listing.error();
      failed_at_ = boot_now();
      return tl::unexpected(std::move(listing.error()));
    }
    listed_at_ = boot_now();
    static std::atomic<std::uint64_t> made = 0;
    static_cast<ListingStamp&>(*listing) = {at, listed_at_ - used_at_, ++made};
    newest_ = std::make_shared<const Listing>(*std::move(listing));
    return newest_;
  }

  /// Whether drop_unused() is to be called after kCheckAfter: true once in ten seconds.
  [[nodiscard]] bool wants_check() {
    const std::lock_guard lock{mutex_};
    const Instant now = boot_now();
    if (check_asked_at_ != Instant::min() && now - check_asked_at_ < std::chrono::seconds{10}) {
      return false;
    }
    check_asked_at_ = now;
    return true;
  }
  /// Forgets the listing if nobody has asked for it for 50 s. Whether there is none now.
  bool drop_unused() {
    const std::lock_guard lock{mutex_};
    if (boot_now() - used_at_ >= std::chrono::seconds{50}) newest_.reset();
    return newest_ == nullptr;
  }
  static constexpr std::chrono::milliseconds kCheckAfter{61'000};

 private:
  static constexpr Duration kFresh = std::chrono::seconds{1};  // for what is listed in no time
  static constexpr Duration kFreshAsked =
      std::chrono::milliseconds{50};  // likewise, after a change
  static constexpr int kPace = 50;

  const Read read_;
  std::mutex mutex_;  // held while Consul is asked
  Pointer newest_;
  std::optional<Error> failure_;  // of the last attempt to list
  Instant failed_at_{};
  Instant listed_at_{};
  Instant used_at_{};
  Instant check_asked_at_ = Instant::min();
};

}  // namespace lictor::admin
