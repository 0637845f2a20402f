#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
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

/// Writes many new records, several transactions at a time, and yet in their order: each
/// transaction reads the last record of the one before and is refused while that is not there.
/// A leader that starts tasks as they come never sees a later one without the earlier ones. Where
/// any order will do, they do not read one another, and more are under way. So they are while the
/// queue is at rest, since nobody starts anything: each transaction is refused then when that has
/// changed, and from there on the order is kept, if it matters.
///
/// Tasks start by their times, then by their creation, then by their keys. Those of one transaction
/// are created together. So the times that were made for tasks are made such that the keys of
/// those of one millisecond are in order, and that they share a transaction: their order holds in
/// whatever order the transactions are carried out. Times that producers gave need not do so: where
/// they do not grow from transaction to transaction, the order of these is kept, also at rest.
///
///   add() --> gathered --> ready --> under way --written-------------> settled, in order
///                                      |   +--refused, early--> again, by the pipeline   ^
///                                      |   +--refused all the same--+                    |
///                                      |   +--Consul away-----------+--> again, alone, --+
///                                      |                                 when it is the oldest
///                                      +--any other error--> the rest is not sent
///
/// Not thread safe.
class RecordWriter {
 public:
  using Records = std::vector<Store::Record>;
  /// Of more, most would overtake one another on their way through Consul, and go twice.
  static constexpr std::size_t kInOrder = 2;
  /// The most that tests/bench measures raw; a quarter of it is a fifth slower.
  static constexpr std::size_t kInAnyOrder = kAtOnce;
  /// A run of the records, by their place in the order of add(): which of them exist already,
  /// counted from `first`, or why they are not written, or not known to be.
  struct Settled {
    std::size_t first = 0;
    std::size_t count = 0;
    Result<Store::Created> created{};
  };

  /// `settled` is called in the order of the records, from add() and finish(). `trouble` is told
  /// when Consul does not answer and is waited for, half a minute.
  RecordWriter(const Queue& queue, std::function<void(const Settled&)> settled,
               std::function<void(const Error&)> trouble = {},
               SubmitOrder order = SubmitOrder::kAsGiven);

  /// May wait for earlier ones. Once stopped() nothing is sent any more, nor settled. A time that
  /// was made for it is moved on where that takes it to start after those before it.
  void add(NewRecord task);
  /// Returns when all are settled. More may be added after that.
  void finish();
  /// The error after which the rest was not sent. A record too large for Consul stops nothing.
  [[nodiscard]] const std::optional<Error>& stopped() const { return stopped_; }

 private:
  struct Sent {
    std::size_t first = 0;
    Records records;
    Store::Condition condition;
  };
  enum class Pace {
    kUnknown,  // whether the queue is at rest
    kInOrder,
    kAtRest,
    kAnyOrder,
  };

  void give_time(NewRecord& task, bool begins_transaction);
  void go_on(Pace pace);
  void find_pace();
  void send();
  void settle_oldest();
  void settle(const Sent& sent, Result<Store::Created> created);
  [[nodiscard]] Result<Store::Created> write_again(const Sent& sent,
                                                   Result<Store::Created> first_try);
  [[nodiscard]] Result<Store::Created> write(const Sent& sent);

  const Queue queue_;
  const std::function<void(const Settled&)> settled_;
  const std::function<void(const Error&)> trouble_;
  const Pace with_leader_;  // where the queue is not at rest

  Records gathered_;
  std::size_t bytes_ = 0;
  std::size_t first_gathered_ = 0;
  WallTime earliest_ = WallTime::max();      // place of what is gathered
  WallTime latest_added_ = WallTime::min();  // of that and all before it
  WallTime latest_sent_ = WallTime::min();
  WallTime last_time_{};  // that was made for a task
  std::string last_id_;   // whose that was
  std::string last_key_;  // of the last in the pipeline
  std::optional<Error> stopped_;

  Pace pace_ = Pace::kUnknown;
  Store::Condition rest_;      // while the queue is at rest
  bool rest_is_over_ = false;  // as one of them was answered
  std::size_t at_once_ = kInOrder;
  std::deque<Sent> sent_;  // what is in the pipeline
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace lictor::client
