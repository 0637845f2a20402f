#pragma once

// Group commit: writes wait here, go out in fenced transactions, and come back settled. A
// transaction is sent when it is full, when its oldest write has waited for 20 ms, or when none is
// under way and there is nothing else to do. Consul's cost is per transaction, so a few writes wait
// for more.
//
//   add() --> waiting --send()--> in flight --applied--------------------> settled kApplied
//               ^                    |  |
//               | not stale          |  +--rejected: the others-> waiting
//               |                    |
//               |    stale, unknown  v
//               +------------------ in doubt --consistent read-----------> settled kApplied, kVoid
//
// No two writes of one transaction touch the same key: they would get one ModifyIndex, and a reader
// that knows one of the two versions could take the other for it. So a job that commits a task
// never shares a transaction with the claim of that task.
//
// A transaction that Consul refuses for its number of operations goes back to the waiting writes:
// Queue has learned the limit by then. A transaction refused as a whole for another reason (too
// many bytes, or not understood) is sent again in halves until the write at fault is known. Halves
// get transactions of their own, so that no other write is refused with them.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/commits/op_cost.h"
#include "core/commits/write.h"
#include "core/commits/write_queue.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/reading/value_reader.h"
#include "core/requests.h"

namespace lictor::core {

class WriteBatcher {
 public:
  enum class Verdict {
    kApplied,
    kVoid,     // the task is gone, or is not as the write expected; `stored` is the current one
    kRefused,  // a claim or tick may not be written, or a finish may not write its job's keys
    kNoToken,  // a claim's bucket has changed, or, with an error, may not be written
  };
  struct Settled {
    Write write;
    Verdict verdict = Verdict::kVoid;
    std::uint64_t modify_index = 0;
    std::shared_ptr<const StoredRecord> stored;
    std::string error{};  // of kRefused and kNoToken
  };
  struct Result {
    std::vector<Settled> settled;
    std::optional<Instant> proof;             // when the applied transaction was sent
    std::vector<std::uint32_t> not_leader{};  // partitions whose fences refused
  };

  WriteBatcher(const QueueOptions& options, Requests& requests);

  void add(Instant now, Write write);
  /// Whether a transaction can hold `op` at all.
  [[nodiscard]] bool fits(const Op& op) const;
  /// Why the task must not be claimed: a write of its life does not fit into a transaction. Gives
  /// the size and the limit. Empty: every write fits.
  [[nodiscard]] std::string too_large(const Task& task) const;
  [[nodiscard]] std::string too_large(const BadRecord& record) const;

  /// Whether more operations may be added now: there is no pause after trouble, and the
  /// transactions that may be under way are not full. With Instant::min(): ignores a pause after
  /// trouble.
  [[nodiscard]] bool has_room(Instant now) const;
  /// Sends waiting writes.
  void send(Instant now, const std::string& session, Effects& out);

  [[nodiscard]] Result on(Instant now, const Committed& reply, Effects& out);
  [[nodiscard]] Result on(Instant now, const TasksFetched& reply, Effects& out);
  void on_time(Instant now, Effects& out);

  /// While `patient`, few writes wait up to 20 ms for more: enough claimed tasks are ready
  /// meanwhile.
  void set_patient(bool patient) { patient_ = patient; }
  /// Sends nothing before `until`: many tasks that are due at once are started first.
  void defer_until(Instant until) { deferred_until_ = until; }

  /// The end of the pause after trouble, if there is one.
  [[nodiscard]] std::optional<Instant> retry_after() const {
    return retry_after_ == Instant::min() ? std::nullopt : std::optional{retry_after_};
  }

  /// Consul's reason for refusing the write about `key`, and the time of the next try.
  [[nodiscard]] std::optional<std::pair<std::string, Instant>> refusal(
      const std::string& key) const;
  /// Why Consul refuses a write that has to be made, such as a finish; empty: it refuses none.
  [[nodiscard]] std::string first_refusal() const {
    return refused_.empty() ? std::string{} : refused_.front().refusal;
  }

  /// Leadership is lost: forgets everything, the next leader decides.
  void clear(Effects& out);
  /// Forgets the writes of one partition, since its leadership is lost.
  void drop(std::uint32_t partition);
  /// Whether no write of the partition is unsettled.
  [[nodiscard]] bool idle(std::uint32_t partition) const;

  [[nodiscard]] bool idle() const { return writes() == 0; }
  /// Number of writes that are not settled; number of transactions under way.
  [[nodiscard]] std::size_t writes() const;
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Batch {
    std::vector<Write> writes;
    Cost cost;  // with the fences
    Instant sent_at{};
    std::vector<std::uint32_t> partitions;
  };
  struct Doubt {
    Write write;
    RequestId since;  // answers to earlier requests are too old
  };

  [[nodiscard]] std::string too_large(const std::string& key, std::size_t bytes) const;
  /// The cost of the fences of a transaction that writes for so many partitions.
  [[nodiscard]] Cost fence(std::size_t partitions) const {
    return options_.costs->fence(options_.partitions, partitions);
  }
  /// Whether the waiting writes fill that many transactions.
  [[nodiscard]] bool is_full(std::size_t transactions) const;
  [[nodiscard]] bool may_send(Instant now) const;
  /// Calls `visit(const Write&)` for each write that is not settled.
  template <class Visit>
  void for_each(Visit visit) const;
  [[nodiscard]] std::vector<Write> pack(Cost& cost);
  /// Sends one transaction with a fence for each partition that it writes for.
  void transmit(Instant now, const std::string& session, std::vector<Write> writes, Cost cost,
                Effects& out);
  /// After a refusal as a whole: sends the transaction again in halves; a single write is settled.
  void split(Instant now, const Committed::Failure& failure, Batch& batch, Effects& out,
             Result& result);
  void settle_refused(Instant now, const Committed::Failure& failure, Write write, Effects& out,
                      Result& result);
  enum class Fate {
    kDoubtful,   // stale: read what the store holds; a minor write: drop it
    kPostponed,  // refused: settle a claim or a tick as refused, send others again later
    kRefused,    // the job's own writes are refused
    kNoToken,    // the bucket is refused
  };
  [[nodiscard]] std::optional<Fate> fate_of(const Committed::Failure& failure, Write& write) const;
  /// After a refusal in parts: each write goes where its failure says (write_batcher_refused.cpp).
  void sort_failures(const Committed& reply, Batch& batch, Instant now, Effects& out,
                     Result& result);
  void postpone(Instant now, Write write, std::string why);
  void count_refused_claim(Instant now);
  [[nodiscard]] std::vector<Write> take_out(Instant now, Batch& batch,
                                            const std::vector<std::optional<Fate>>& fates,
                                            std::map<std::size_t, std::string>& errors,
                                            Result& result);
  void wait(Instant now, WriteQueue::Item item, bool first);
  /// Puts the writes before all waiting ones, in their order.
  void requeue(Instant now, std::vector<Write> writes);
  /// Whether the number of operations was the cause, which the queue has learned by now.
  [[nodiscard]] bool had_too_many(const Committed& reply, const Batch& batch) const;
  /// Whether the write was applied is not known: reads its key.
  void doubt(Write write);
  /// Settles the write by a consistent read of its key, as applied or void, or sends it again.
  void resolve_doubt(Instant now, Write write, const StoredRecord* stored, Result& result);

  const QueueOptions& options_;
  Requests& requests_;
  ValueReader reads_;  // of doubtful keys
  const Cost fence_;   // of one partition

  WriteQueue waiting_;
  std::deque<std::vector<Write>> single_writes_;  // each needs a transaction of its own
  std::size_t most_bytes_;                        // of a transaction, lowered by refusals
  std::map<RequestId, Batch> in_flight_;

  std::map<std::string, Doubt> doubtful_;  // by key; each is read before anything else is done
  Instant retry_after_ = Instant::min();   // after trouble
  Instant deferred_until_ = Instant::min();
  bool patient_ = false;
  Instant waiting_since_ = Instant::min();  // the oldest of waiting_

  std::vector<Write> refused_;  // refused for a reason of their own; they must not hold up the rest
  Instant refused_until_ = Instant::min();
  std::size_t refused_claims_ = 0;         // since a transaction was applied
  Instant claims_after_ = Instant::min();  // no claims before, since too many were refused
  bool denied_reported_ = false;
};

}  // namespace lictor::core
