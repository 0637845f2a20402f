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
// No two writes of one transaction touch the same key: they would get one ModifyIndex, and who
// knows one of the two versions could take the other for it. So a job that commits a task never
// shares a transaction with the claim of that task.
//
// A transaction that Consul refuses for its number of operations goes back to those that wait:
// Queue has learned by then how many it takes. One that is refused as a whole for another reason
// (too many bytes, or not understood) is sent again in halves until the write at fault is known.
// Halves get transactions of their own, so that nothing else is refused with them.

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
#include "core/reading/batch_size.h"
#include "core/requests.h"

namespace lictor::core {

class WriteBatcher {
 public:
  enum class Verdict {
    kApplied,
    kVoid,     // the task is gone, or is not as the write expected; `stored` is what it is now
    kRefused,  // a claim or tick may not be written, or a finish's job may not write what it wants
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
  /// Why the task must not be claimed: some write of its life does not fit into a transaction.
  /// Gives the size and the limit. Empty: every write fits.
  [[nodiscard]] std::string too_large(const Task& task) const;
  [[nodiscard]] std::string too_large(const BadRecord& record) const;

  /// Whether more operations may be added now: no pause after trouble, and the transactions that
  /// may be under way are not full.
  /// With Instant::min(): ignores a pause after trouble.
  [[nodiscard]] bool has_room(Instant now) const;
  /// Sends what waits.
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

  /// What Consul said of the write about `key` that it refused, and when it is tried again.
  [[nodiscard]] std::optional<std::pair<std::string, Instant>> refusal(
      const std::string& key) const;

  /// Leadership is lost: forgets everything, the next leader decides.
  void clear(Effects& out);
  /// The same for one partition.
  void drop(std::uint32_t partition);
  /// Nothing of the partition's is left to be settled.
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

  [[nodiscard]] std::string too_large(const std::string& key, std::size_t bytes) const;
  /// Of a transaction that writes for so many partitions.
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
  /// Refused as a whole: sends it again in halves; a write alone is settled.
  void split(Instant now, const Committed::Failure& failure, Batch& batch, Effects& out,
             Result& result);
  void settle_refused(Instant now, const Committed::Failure& failure, Write write, Effects& out,
                      Result& result);
  enum class Fate {
    kDoubtful,   // stale: what the store holds is read; of a minor write: let go
    kPostponed,  // refused: a claim, a tick is settled as that, others are sent again later
    kRefused,    // what the job wrote is refused
    kNoToken,    // the bucket is refused
  };
  [[nodiscard]] std::optional<Fate> fate_of(const Committed::Failure& failure, Write& write) const;
  /// Refused in parts: each write goes where its failure says (write_batcher_refused.cpp).
  void sort_failures(const Committed& reply, Batch& batch, Instant now, Effects& out,
                     Result& result);
  [[nodiscard]] std::vector<Write> take_out(Batch& batch,
                                            const std::vector<std::optional<Fate>>& fates,
                                            std::map<std::size_t, std::string>& errors,
                                            Result& result);
  void wait(Instant now, WriteQueue::Item item, bool first);
  /// Puts them before all that waits, in their order.
  void requeue(Instant now, std::vector<Write> writes);
  /// It was refused for its number of operations, which the queue has learned by now.
  [[nodiscard]] bool had_too_many(const Committed& reply, const Batch& batch) const;
  /// Reads doubtful keys, unless a reading is under way.
  void resolve(Effects& out);
  void set_unanswered_aside(Instant now, Effects& out);
  /// Settles the write by a consistent read of its key, as applied or void, or sends it again.
  void resolve_doubt(Instant now, Write write, const StoredRecord* stored, Result& result);

  const QueueOptions& options_;
  Requests& requests_;
  BatchSize read_size_;  // of doubtful keys
  const Cost fence_;     // of one partition

  WriteQueue waiting_;
  std::deque<std::vector<Write>> single_writes_;  // each needs a transaction of its own
  std::size_t most_bytes_;                        // of a transaction, by what the store has refused
  std::map<RequestId, Batch> in_flight_;

  std::map<std::string, Write> doubtful_;  // by key: to be read before anything else is done
  RequestId read_;
  std::vector<std::string> reading_;  // the keys that it asks for
  // Doubtful keys that the answer left out: read again later, so that they block nothing else.
  std::map<std::string, Write> unanswered_;
  Instant unanswered_until_ = Instant::min();
  Instant retry_after_ = Instant::min();  // after trouble
  Instant deferred_until_ = Instant::min();
  bool patient_ = false;
  Instant waiting_since_ = Instant::min();  // the oldest of waiting_

  std::vector<Write> refused_;  // refused for a reason of their own; they must not hold up the rest
  Instant refused_until_ = Instant::min();
  bool denied_reported_ = false;
};

}  // namespace lictor::core
