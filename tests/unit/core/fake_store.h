#pragma once

// A Consul for the core: KV with ModifyIndex, sessions, one lock with its lock-delay, and the
// transactions that the core asks for, with the answers of consul.md. It acts at once; that
// requests and replies are late or lost is the cluster's business.

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/leadership/division.h"
#include "tamper.h"

namespace lictor::core::test {

inline constexpr std::string_view kTasks = "tasks/";

class FakeStore {
 public:
  explicit FakeStore(std::uint64_t seed) : random_(seed) {}

  // What the daemons ask. `now` is the store's clock.
  SessionCreated create_session(Instant now, const CreateSession& effect, Duration ttl,
                                Duration lock_delay);
  SessionRenewed renew(Instant now, const RenewSession& effect);
  SessionDestroyed destroy(Instant now, const DestroySession& effect);
  LockReplied lock(Instant now, const AcquireLock& effect, const std::string& node,
                   std::uint64_t incarnation);
  UnlockReplied unlock(const ReleaseLock& effect);
  LeaderRead read_leader(const ReadLeader& effect) const;
  ControlRead read_control(const WatchControl& effect) const;
  TasksListed list(const ListTasks& effect) const;
  TasksFetched fetch(const FetchTasks& effect) const;
  TasksChecked check(const CheckTasks& effect) const;
  HistoryListed list(const ListHistory& effect) const;
  SchedulesListed list(const ListSchedules& effect) const;
  RateRead read(const ReadRate& effect) const;
  Committed commit(const Commit& commit);
  /// Whether the last commit was carried out, whatever was answered.
  [[nodiscard]] bool applied() const { return applied_; }
  // What the wire layer could do wrong, it cannot.
  [[nodiscard]] std::string fence_fault() const { return {}; }
  [[nodiscard]] std::vector<std::string> strays() const { return {}; }
  [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }
  /// Blocking queries: nothing while they have nothing to say and the wait is not `over`.
  std::optional<LeaderRead> poll(const ReadLeader& effect, bool over) const;
  std::optional<ControlRead> poll(const WatchControl& effect, bool over) const;
  std::optional<TasksListed> poll(const ListTasks& effect, bool over) const;
  std::optional<SchedulesListed> poll(const ListSchedules& effect, bool over) const;
  /// What befalls the next reply, until it is told again.
  void tamper(Instant now, const Tampering& tampering) {
    now_ = now;
    tampering_ = tampering;
  }
  /// How often each happened.
  std::map<Tamper, std::size_t> tampered() const { return tampered_; }
  /// Keeps what is answered, for kStale.
  bool remembers = false;

  // What strangers do. A task's `record` says what it is: it comes back whatever lictor stamps.
  /// What a job would write for the task to be there.
  [[nodiscard]] std::string value_of(const Task& task);
  void put(Task task);
  void put_bad(const std::string& key, const std::string& bytes, const std::string& error);
  /// Rewrites a task beside lictor's fields, which it keeps.
  void touch(const std::string& key, const std::string& bytes);
  /// A snapshot was restored in which the task was as it is given, with its ModifyIndex.
  void bring_back(const Task& task) { tasks_.insert_or_assign(task.key, task); }
  void remove(const std::string& key);
  /// "kv delete -recurse" of the tasks' prefix without its last slash: the tombstone is of a
  /// shorter key, so the index of the prefix is that of an older one, or that of the table.
  void remove_tree();
  /// Writes a schedule; null: one that cannot be read.
  void put_schedule(const std::string& name, std::shared_ptr<const schedule::Definition> what);
  void remove_schedule(const std::string& name);
  /// As an operator would: what is locked is in lock-delay then.
  void destroy(Instant now, const std::string& session) { invalidate(now, session); }
  /// Everything of the queue but its dead letters, which are counted at the end.
  void remove_all();
  void remove_leader_key();
  /// Writes the leader key without touching the lock, as a plain PUT does.
  void overwrite_leader_key();
  void control(bool paused, const std::string& step_down);
  void remove_control();
  void overwrite_control() { control_unreadable_ = true, control_ = {true, {}, {}, ++index_}; }

  /// All of Consul's servers are restored from a snapshot, in which there is no lock-delay.
  void forget_lock_delay() {
    for (auto& [partition, lock] : locks_) lock.barred_until = Instant::min();
  }
  /// They are restored from one that was taken after the lock was released, and before it was
  /// acquired again: at this index.
  void restore_release(std::uint64_t index) {
    forget_lock_delay();
    Key& leader = locks_[lock_of(0)];
    leader.session.clear();
    leader.value = leader.value.substr(0, leader.value.find('#'));
    leader.modify_index = index;
  }
  /// Consul's servers elect a leader: the time-outs of all sessions begin again.
  void fail_over(Instant now);
  /// Tombstones are reaped: the prefix's index goes back to that of its newest key.
  void reap() { last_erased_ = 0; }

  void expire_sessions(Instant now);
  [[nodiscard]] Instant next_expiry() const;

  [[nodiscard]] const Task* task(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const { return tasks_.contains(key); }
  [[nodiscard]] std::vector<std::string> task_keys() const;
  /// A queue of several partitions has a key that says how many; its ModifyIndex.
  std::uint64_t make_partitions(std::uint32_t count) {
    count_ = count;
    ++index_;
    return count_index_ = count == 1 ? 0 : index_;
  }
  [[nodiscard]] std::uint32_t partitions() const { return count_; }
  [[nodiscard]] std::uint64_t partitions_index() const { return count_index_; }
  // What core::Division asks; the members are the cluster's.
  [[nodiscard]] FleetRead answer(const ReadFleet& ask) const;
  [[nodiscard]] DivisionReply answer(const ReadCount& ask) const;
  [[nodiscard]] DivisionReply answer(const ProbeUndivided& ask) const;
  [[nodiscard]] DivisionReply answer(const ProbeChange&) const {
    return {DivisionReply::Answer::kYes, {}};
  }
  DivisionReply answer(const CreateCount& ask);
  DivisionReply answer(const DeleteLocks& ask);
  DivisionReply answer(const ChangeCount& ask);
  /// Who holds the lock of the partition; empty: nobody.
  [[nodiscard]] std::string session_of(const Partition& partition) const {
    const auto lock = locks_.find(lock_of(partition));
    return lock == locks_.end() ? std::string{} : lock->second.session;
  }
  [[nodiscard]] std::string leader_session(std::uint32_t partition = 0) const {
    return session_of({count_, partition});
  }
  [[nodiscard]] bool session_lives(const std::string& id) const { return sessions_.contains(id); }
  [[nodiscard]] std::uint64_t index() const { return index_; }

  [[nodiscard]] std::uint64_t tasks_index() const;
  [[nodiscard]] std::uint64_t leader_index(const Partition& partition) const;
  [[nodiscard]] std::uint64_t control_index() const;

  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  // of a transaction
  std::size_t most_operations = limits::kMostOperations;             // the same, reads included
  std::map<std::string, BuryOp> dead;  // by their names: "dead/<id>" or longer
  std::vector<std::string> finished;   // the bytes of the records that a FinishOp deleted
  RateMark rate;                       // the bucket, with its ModifyIndex
  // By the task's key, with the ModifyIndex.
  std::map<std::string, std::pair<std::shared_ptr<const DoneRecord>, std::uint64_t>> history;
  // What jobs wrote with their finish, and how often each value was written.
  std::map<std::string, std::pair<std::string, std::uint64_t>> app;
  std::map<std::string, std::size_t> app_writes;
  std::map<std::string, SchedulesListed::Entry> schedules;  // by name
  std::map<std::string, std::size_t> ticks;                 // how often each tick's task was made
  std::set<std::string, std::less<>> no_right;              // writing these keys is denied
  bool unreadable = false;  // a listing shows nothing, as for a token without rights

 private:
  struct Session {
    Duration ttl{};
    Duration lock_delay{};
    Instant expires{};
  };
  struct Key {
    bool exists = false;
    std::string session;
    std::string value;  // of the leader key: node#incarnation; node when it was released in order
    std::uint64_t modify_index = 0;
    std::optional<Duration> lock_delay{};   // of a lock: its holder's
    Instant barred_until = Instant::min();  // the same: Consul's lock-delay
  };
  void start_timer(Instant now, Session& session);
  void invalidate(Instant now, const std::string& session);
  template <class Reply>
  [[nodiscard]] Reply spoiled(Reply reply, std::deque<std::pair<Instant, Reply>>& earlier) const;
  void store(StoredRecord record, std::uint64_t index);
  void erase(const std::string& key);
  void apply(const ScheduleOp& op);
  SchedulesListed::Entry& entry_of(const std::string& name);
  [[nodiscard]] static std::string dead_key(const BuryOp& op);

  Random random_;
  std::uint64_t schedules_index_ = 1;
  std::uint64_t index_ = 10;
  std::uint64_t last_session_ = 0;
  std::map<std::string, Session> sessions_;
  std::map<std::string, StoredRecord> tasks_;
  std::map<std::string, Task> templates_;                  // by the producer's bytes
  std::uint64_t last_erased_ = 0;                          // of the newest tombstone
  using LockId = std::pair<std::uint32_t, std::uint32_t>;  // how many partitions, and which
  [[nodiscard]] static LockId lock_of(const Partition& p) { return {p.count, p.number}; }
  [[nodiscard]] LockId lock_of(std::uint32_t partition) const { return {count_, partition}; }
  /// The number of partitions is what the request says.
  [[nodiscard]] bool is_count(std::uint64_t count_index) const;
  std::map<LockId, Key> locks_;
  std::uint32_t count_ = 1;
  std::uint64_t count_index_ = 0;
  Key control_, marker_;
  bool paused_ = false;
  bool control_unreadable_ = false;
  std::string step_down_;

  bool applied_ = false;
  Instant now_{};
  Tampering tampering_;
  mutable std::map<Tamper, std::size_t> tampered_;
  mutable std::map<LockId, std::deque<std::pair<Instant, LeaderRead>>> leader_reads_;
  mutable std::deque<std::pair<Instant, ControlRead>> control_reads_;
  mutable std::deque<std::pair<Instant, TasksListed>> lists_;
};

}  // namespace lictor::core::test
