#pragma once

// Checks for events that must never happen, at the time when they would happen. The oracle knows
// what the store did, what each daemon heard and what jobs ran; it asks the cores nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "cluster.h"

namespace lictor::core::test {

/// The producer's name of the record, whatever another client wrote beside ("record 12+40").
[[nodiscard]] inline std::string origin(const std::string& record) {
  return record.substr(0, record.find('+'));
}

/// The most tasks that are claimed and not ended yet.
[[nodiscard]] inline std::size_t most_claimed(const QueueOptions& options) {
  const bool adaptive = AdaptivePrefetch{options}.enabled();
  return options.concurrency + (adaptive ? AdaptivePrefetch::most(options) : options.prefetch);
}

class Oracle {
 public:
  /// Hooks itself into `cluster`, which must outlive it.
  explicit Oracle(Cluster& cluster);
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  /// A producer wrote this record; it must end, unless withdraw() says otherwise.
  void produced(const Task& task);
  /// Another client removed or replaced the record.
  void withdrawn(const std::string& record) { written_.erase(origin(record)); }
  /// Another client wrote beside lictor's fields; the record is `record` now.
  void touched(const std::string& key, const std::string& record) {
    latest_[key] = record;
    touched_.insert(key);
  }
  /// The control key says so now.
  void control(bool paused);
  /// From now on all claims must be within this rate, whoever leads; std::nullopt: no rate is
  /// checked. For runs in which all clocks are right.
  void watch_rate(const std::optional<Rate>& rate) { rate_ = rate; }
  /// Listings may be older than acknowledged writes.
  void allow_stale() { stale_ = true; }

  /// Checks nothing any more: a restored snapshot takes back what was acknowledged. The cluster
  /// itself goes on to check that no task runs twice at once.
  void look_away();
  /// Checks the whole of a run; holds at any moment.
  void check_books();
  /// Checks that nothing was lost, once everything has ended.
  void check_nothing_lost();

  [[nodiscard]] std::size_t starts() const { return starts_; }
  [[nodiscard]] std::size_t losses() const { return losses_; }
  [[nodiscard]] std::size_t effects() const { return cluster_.store.app_writes.size(); }
  [[nodiscard]] std::size_t dead() const { return cluster_.store.dead.size(); }

 private:
  struct History {  // of one record
    Task task;
    std::uint32_t starts = 0;
    std::uint32_t crashed = 0;   // attempts that died with their daemon
    std::uint32_t failures = 0;  // that were written as such
  };
  /// A task that a daemon gave back, as it was stored then.
  struct Returned {
    const Daemon* daemon = nullptr;
    std::uint64_t term = 0;
    std::uint64_t index = 0;
  };
  /// The state since the daemon won the last of its partitions.
  struct Term {
    std::uint64_t number = 0;
    std::set<std::pair<std::string, std::uint64_t>> acknowledged;  // deletes, by key and index
    std::set<std::string> done;                                    // records whose jobs ended well
    // By key: the first of the answers that have shown it ever since, and that answer's index.
    struct Shown {
      std::uint64_t answer = 0;
      std::uint64_t index = 0;
      bool was_read = false;  // before that answer, since a name was used again
    };
    std::map<std::string, Shown, std::less<>> shown;
    std::uint64_t answers = 0;
    std::uint64_t answered_index = 0;
    // By a claimed key: returned tasks before it that could not be claimed then.
    std::map<std::string, std::set<std::string>> excused;
    std::set<std::string> tried;  // keys whose claim was sent, and that did not end
    // When the end of a key's last task was acknowledged; after that the first answer.
    std::map<std::string, Instant> ended;
    Instant answered_at{};
  };
  /// Consul's time for a daemon's lists of names, times ten.
  struct Spent {
    std::uint64_t incarnation = 0;
    Instant paid{};
  };

  void fail(const std::string& what) { cluster_.violation(what); }
  void on_effect(const Daemon& daemon, const Effect& effect);
  void on_step(const Daemon& daemon);
  void on_start(const Daemon& daemon, const StartJob& start);
  void on_alone(const Daemon& daemon, const StartJob& start);
  [[nodiscard]] bool may_be_claimed(const Daemon& daemon, const Task& task) const;
  [[nodiscard]] std::set<std::string> overtaken_by(const Daemon& daemon, const Task& task) const;
  void excuse(const Daemon& daemon, const Task& claimed);
  void check_overtaken(const Daemon& daemon, const Task& task);
  [[nodiscard]] std::string unfenced(const Commit& commit) const;
  void on_commit(const Daemon& daemon, const Commit& commit);
  void check_owner(const Daemon& daemon, const Commit& commit, const RestampOp& op,
                   const Stamp& stored);
  void on_names(const Daemon& daemon, const TasksListed& names);
  void check_pace(const Daemon& daemon, Duration cost, Spent& spent);
  void check_order(const Daemon& daemon, const RestampOp& claim);
  void on_served(const Daemon& daemon, const Effect& effect, const Event& reply);
  void on_buried(const BuryOp& op);
  void on_written(const FinishOp& op);
  void check_learnt(const Daemon& daemon, const Event& reply);
  void on_delivered(const Daemon& daemon, const Effect& effect, const Event& reply, Instant sent);
  void on_job_end(const Daemon& daemon, const Job& job, JobEnding how);
  void check_bounds(const Daemon& daemon);
  void check_restamp(const Daemon& daemon, const RestampOp& op);
  void check_rate(const Daemon& daemon, const RestampOp& claim);
  void check_read(const Daemon& daemon, const Effect& effect, const Event& reply);
  [[nodiscard]] History& history(const std::string& record) { return records_[origin(record)]; }
  [[nodiscard]] Instant proof_of(const Daemon& daemon) const {
    const auto proof = proofs_.find(&daemon);
    return proof == proofs_.end() ? Instant::min() : proof->second;
  }

  Cluster& cluster_;
  bool stale_ = false;
  bool looks_away_ = false;
  std::optional<Rate> rate_;
  WallTime full_at_{};         // the bucket, by the claims that were applied
  std::int64_t reserved_ = 0;  // tokens that were taken for claims that may follow
  Instant paused_since_ = Instant::max();
  std::map<std::string, History> records_;  // by the producer's bytes
  std::set<std::string> written_;
  std::map<std::string, std::string> latest_;  // by key: as producers and other clients wrote it
  std::set<std::string> touched_;  // keys that other clients rewrote: a new one has no place yet
  std::map<const Daemon*, Term> terms_;
  std::map<std::string, Returned> returned_;  // by key
  std::map<const Daemon*, Spent> spent_;
  std::map<const Daemon*, Spent> spent_of_link_;
  std::map<std::pair<const Daemon*, std::uint32_t>, Instant> led_since_;  // by partition
  std::map<const Daemon*, Instant> proofs_;  // when the last proof that it heard was sent
  std::map<std::string, Task> tasks_;        // by key: as last produced
  // The claimant under a nonce, and its incarnation.
  using Owner = std::pair<const Daemon*, std::uint64_t>;
  std::map<std::string, Owner> claims_;
  std::map<std::pair<const Daemon*, std::uint64_t>, std::size_t> too_many_;  // by incarnation
  std::set<std::string> started_claims_;
  std::uint64_t term_count_ = 0;
  std::size_t starts_ = 0;
  std::size_t losses_ = 0;
};

}  // namespace lictor::core::test
