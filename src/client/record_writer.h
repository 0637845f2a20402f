#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/new_record.h"
#include "client/pipeline.h"
#include "client/queue.h"
#include "client/store.h"
#include "lictor/client.h"
#include "lictor/result.h"

namespace lictor::client {

/// Writes many new records in order, with several transactions under way. Each transaction checks
/// that the last record of the one before exists, so a leader never sees a later task without the
/// earlier ones. The check is left out where any order will do.
///
/// Tasks start by time, then CreateIndex, then key; a transaction gives its tasks one CreateIndex.
/// So keys grow within a millisecond of the times made here, and in any order these times grow from
/// transaction to transaction.
///
///   add() --> gathered --> ready --> under way --written-------------> settled, in order
///                                      |   +--refused by its check-+                    ^
///                                      |   +--Consul away----------+--> again, alone, --+
///                                      |                                when it is the oldest
///                                      +--any other error--> the rest is not sent
///
/// Not thread safe.
class RecordWriter {
 public:
  using Records = std::vector<Store::Record>;
  /// With more, most would overtake one another in Consul and be written again.
  static constexpr std::size_t kInOrder = 2;
  /// The most that tests/bench measures; a quarter of it is 20% slower.
  static constexpr std::size_t kInAnyOrder = kAtOnce;
  /// The result of consecutive records, in the order of add(): which existed already, counted from
  /// `first`, or why they were not written or are in doubt.
  struct Settled {
    std::size_t first = 0;
    std::size_t count = 0;
    Result<Store::Created> created{};
  };

  /// Calls `settled` in the order of the records, from add() and finish(), and `trouble` when
  /// Consul does not answer; then waits for it, 30 s at most.
  RecordWriter(const Queue& queue, std::function<void(const Settled&)> settled,
               std::function<void(const Error&)> trouble = {},
               SubmitOrder order = SubmitOrder::kAsGiven);

  /// May wait for earlier records. Does nothing once stopped(). Moves a made time on where needed
  /// to keep the order.
  void add(NewRecord task);
  /// Waits until all are settled, and until the clock has passed the times that were made, so that
  /// whatever is submitted next comes after them. More may be added afterwards.
  void finish();
  /// The error after which nothing more was sent. A record too large for Consul does not count.
  [[nodiscard]] const std::optional<Error>& stopped() const { return stopped_; }

 private:
  struct Sent {
    std::size_t first = 0;
    Records records;
    std::string after;  // the key that has to exist; empty: none
  };

  void give_time(NewRecord& task, bool begins_transaction);
  void send();
  void settle_oldest();
  void outlast_times() const;
  void settle(const Sent& sent, Result<Store::Created> created);
  [[nodiscard]] Result<Store::Created> write_again(const Sent& sent,
                                                   Result<Store::Created> first_try);

  const Queue queue_;
  const std::function<void(const Settled&)> settled_;
  const std::function<void(const Error&)> trouble_;
  const bool in_order_;
  const std::size_t at_once_ = in_order_ ? kInOrder : kInAnyOrder;

  Records gathered_;
  std::size_t bytes_ = 0;
  std::size_t first_gathered_ = 0;
  WallTime last_time_{};   // the last generated time
  bool moved_on_ = false;  // it is ahead of the clock
  std::string last_id_;    // its task
  std::string last_key_;   // the last key in the pipeline
  std::optional<Error> stopped_;

  std::deque<Sent> sent_;  // in the pipeline
  Pipeline pipeline_;
};

}  // namespace lictor::client
