#pragma once

// The contents of a queue in Consul, read once for all clients that look at lists.
//
//   get() --fresh enough--> the listing that is there
//     |
//     +--not--> Consul is read, under the mutex: later callers wait, and get the same
//               answer or the same error
//
// A listing is fresh for a second, and for 50 times as long as its reading took; so a large queue
// is read less often, and a page that asks each second costs Consul no more than a page that does
// not. A client that has just changed something asks with ?newer_than=: its listing is read again
// sooner, within the pace.

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/time_text.h"
#include "client/schedules.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::admin {

/// When a listing was read.
struct ListingStamp {
  WallTime at{};  ///< when the reading began
  Duration took{};
};

/// Reads a listing when somebody asks, and for at most 2% of the time: 100,000 tasks take a second.
/// Forgets it when nobody has asked for 50 s. `Listing` is a ListingStamp with the data. Thread
/// safe.
template <class Listing>
class SharedListing : public std::enable_shared_from_this<SharedListing<Listing>> {
 public:
  using Pointer = std::shared_ptr<const Listing>;
  /// Reads Consul; may leave the stamp alone.
  using Read = std::function<Result<Listing>()>;

  explicit SharedListing(Read read) : read_(std::move(read)) {}

  /// Blocks while Consul is asked, by this or another thread. With ?newer_than= the listing begins
  /// after this time, if the pace allows. Errors: those of the reading.
  [[nodiscard]] Result<Pointer> get(const Call& call) {
    auto listing = current(parse_rfc3339(call.request.parameter("newer_than").value_or("")));
    if (listing && wants_check()) {  // called without the lock: a server that stops runs it at once
      call.exchange->later(kCheckAfter, [self = this->shared_from_this()] { self->drop_unused(); });
    }
    return listing;
  }

 private:
  static constexpr Duration kFresh = std::chrono::seconds{1};  // for a listing that takes no time
  static constexpr Duration kFreshAsked =
      std::chrono::milliseconds{50};  // for such a listing, after a change
  static constexpr int kPace = 50;
  static constexpr Duration kKeepUnused = std::chrono::seconds{50};
  static constexpr Duration kCheckEvery = std::chrono::seconds{10};
  // Over kKeepUnused + kCheckEvery, so that a check comes after the last use has grown old enough.
  static constexpr std::chrono::seconds kCheckAfter{61};

  Result<Pointer> current(std::optional<WallTime> newer_than) {
    const Instant asked_at = boot_now();
    const std::lock_guard lock{mutex_};
    used_at_ = boot_now();
    // Callers that waited for the same reading share its error: a silent Consul delays each once.
    if (failure_ && failed_at_ >= asked_at) return tl::unexpected(*failure_);
    failure_.reset();
    if (newest_) {
      const Duration fresh = newer_than && newest_->at < *newer_than ? kFreshAsked : kFresh;
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
    static_cast<ListingStamp&>(*listing) = {at, listed_at_ - used_at_};
    newest_ = std::make_shared<const Listing>(*std::move(listing));
    return newest_;
  }

  bool wants_check() {
    const std::lock_guard lock{mutex_};
    if (used_at_ - check_asked_at_ < kCheckEvery) return false;
    check_asked_at_ = used_at_;
    return true;
  }
  void drop_unused() {
    const std::lock_guard lock{mutex_};
    if (boot_now() - used_at_ >= kKeepUnused) newest_.reset();
  }

  const Read read_;
  std::mutex mutex_;  // held while Consul is asked
  Pointer newest_;
  std::optional<Error> failure_;  // of the last attempt to list
  Instant failed_at_{};
  Instant listed_at_{};
  Instant used_at_{};
  Instant check_asked_at_{};
};

/// A listing for each queue, by its name.
template <class Listing>
using Listings = std::map<std::string, std::shared_ptr<SharedListing<Listing>>>;

/// `queues` must outlive the listings.
template <class Listing>
Listings<Listing> make_listings(const StoredQueues& queues,
                                Result<Listing> (*read)(const client::Queue& queue)) {
  Listings<Listing> listings;
  for (const StoredQueue& queue : queues) {
    listings[queue.queue.name] = std::make_shared<SharedListing<Listing>>(
        [read, &stored = queue.queue] { return read(stored); });
  }
  return listings;
}

/// The schedules of a queue, by their names, without the records and the templates of their tasks.
struct ScheduleListing : ListingStamp {
  std::vector<client::StoredSchedule> schedules;
  bool hidden = false;  ///< there may be more, which the token may not read
};
[[nodiscard]] Result<ScheduleListing> read_schedules(const client::Queue& queue);

/// GET /v1/schedules, /v1/schedules/<name>
void add_schedule_routes(Router& router, const StoredQueues& queues,
                         const Listings<ScheduleListing>& listings);

}  // namespace lictor::admin
