#pragma once

// In the place of the event-level store of the core's unit tests, with its interface: every effect
// is worded by src/wire, answered by the model of Consul (src/dev), and read back by src/wire.
//
// The core's records are opaque to it. Here, too, a record is what its producer called it
// ("record 12"); the store holds the JSON that stands for it.

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/effect.h"
#include "core/event.h"
#include "dev/model.h"
#include "tamper.h"
#include "wire/consul.h"
#include "wire/fleet.h"

namespace lictor::core::test {

inline constexpr std::string_view kTasks = "tasks/";

class FakeStore {
 public:
  explicit FakeStore(std::uint64_t seed);

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
  std::optional<LeaderRead> poll(const ReadLeader& effect, bool over) const;
  std::optional<ControlRead> poll(const WatchControl& effect, bool over) const;
  std::optional<TasksListed> poll(const ListTasks& effect, bool over) const;
  std::optional<SchedulesListed> poll(const ListSchedules& effect, bool over) const;

  /// What a job would write for the task to be there.
  [[nodiscard]] std::string value_of(const Task& task);
  void put(const Task& task);
  void put_bad(const std::string& key, const std::string& bytes, const std::string& error);
  void touch(const std::string& key, const std::string& bytes);
  void put_schedule(const std::string& name, const std::string& record) {
    write("PUT", "/v1/kv/schedules/" + name, record);
  }
  void remove(const std::string& key);
  /// Everything of the queue but its dead letters, which are counted at the end.
  void remove_all();
  void remove_leader_key() { write("DELETE", "/v1/kv/leader"); }
  void overwrite_leader_key() { write("PUT", "/v1/kv/leader", "a stranger"); }
  void control(bool paused, const std::string& step_down);
  void remove_control() { write("DELETE", "/v1/kv/control"); }
  void overwrite_control() { write("PUT", "/v1/kv/control", "nonsense"); }
  void destroy(Instant now, const std::string& session);

  void forget_lock_delay() { model_.forget_lock_delays(); }
  void fail_over(Instant now) { model_.fail_over(now); }
  void reap() { model_.reap(); }
  void expire_sessions(Instant now);
  [[nodiscard]] Instant next_expiry() const { return model_.next_deadline(); }

  /// Valid until the next call of anything.
  [[nodiscard]] const Task* task(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  [[nodiscard]] std::vector<std::string> task_keys() const;
  /// A queue of several partitions has a key that says how many; its ModifyIndex.
  [[nodiscard]] std::uint64_t make_partitions(std::uint32_t count);
  [[nodiscard]] std::uint32_t partitions() const { return count_; }
  [[nodiscard]] std::uint64_t partitions_index() const;
  /// What core::Division asks; the members are the cluster's.
  template <class Ask>
  [[nodiscard]] auto answer(const Ask& ask) {
    http::Response response;
    if constexpr (std::is_same_v<Ask, CreateCount>) {
      response = this->ask(wire::encode(binding_, ask, WallTime{}));
    } else {
      response = this->ask(wire::encode(binding_, ask));
    }
    learn_count();
    return wire::decode(binding_, ask, response);
  }
  /// Who holds the lock of the partition; empty: nobody.
  [[nodiscard]] const std::string& session_of(const Partition& partition) const;
  [[nodiscard]] const std::string& leader_session(std::uint32_t partition = 0) const {
    return session_of({count_, partition});
  }
  [[nodiscard]] std::uint64_t index() const { return model_.index(); }

  void tamper(Instant now, const Tampering& tampering) {
    now_ = now;
    tampering_ = tampering;
  }
  [[nodiscard]] std::map<Tamper, std::size_t> tampered() const { return tampered_; }
  bool remembers = false;

  [[nodiscard]] bool applied() const { return applied_; }
  /// What is wrong with the transaction that was applied last, as Consul saw it: a write that a
  /// deposed leader, or one who knows an older version, could have made as well. Empty: nothing.
  [[nodiscard]] std::string fence_fault() const;
  /// Keys that nothing of lictor's would be looked for under.
  [[nodiscard]] std::vector<std::string> strays() const;
  [[nodiscard]] std::size_t sessions() const { return model_.state().sessions().size(); }

  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  // of a transaction
  std::size_t most_operations = limits::kMostOperations;             // the same, reads included
  std::map<std::string, BuryOp> dead;  // by their names: "dead/<id>" or longer
  std::vector<std::string> finished;   // the records that a FinishOp deleted
  std::map<std::string, std::size_t> app_writes;

 private:
  [[nodiscard]] std::optional<http::Response> ask(const http::Request& request, bool over) const;
  [[nodiscard]] http::Response ask(const http::Request& request) const;
  void spoil(const http::Request& request, http::Response& response) const;
  void write(const std::string& method, const std::string& target, std::string body = {});
  void set(const std::string& key, const std::string& value, std::uint64_t flags);
  [[nodiscard]] const dev::KvRecord* find(const std::string& key) const;
  [[nodiscard]] Commit worded(const Commit& commit) const;
  void translate(StoredRecord& record) const;
  void note(const Op& op, const std::map<std::string, std::string>& there);

  mutable dev::Model model_;
  void learn_count();

  std::uint32_t count_ = 1;  // of partitions
  wire::Binding binding_;
  Instant now_{};
  Tampering tampering_;
  bool applied_ = false;
  std::string last_body_;             // of the last commit, when it was a transaction and applied
  std::set<std::string> job_writes_;  // the keys that jobs wrote by it
  mutable bool carried_out_ = false;  // the last request, whatever was answered
  mutable std::map<Tamper, std::size_t> tampered_;
  mutable std::map<std::string, std::deque<std::pair<Instant, http::Response>>> earlier_;
  std::map<std::string, std::string> json_of_;                                        // by record
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> record_of_;  // by JSON
  // As the store held them, with lictor's fields.
  mutable std::unordered_map<std::string, std::shared_ptr<const std::string>> seen_;
  mutable std::optional<Task> found_;
  mutable std::string session_;
  mutable wire::ScheduleCache schedules_;
};

}  // namespace lictor::core::test
