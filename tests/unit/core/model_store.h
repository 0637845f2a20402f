#pragma once

// Consul for the core: src/wire words every effect, the model of Consul (src/dev) answers, and
// src/wire reads the answer. The model acts at once; the cluster makes requests and replies late or
// lost. The core's records are opaque to it. Here, too, a record is its producer's name for it
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
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/effect.h"
#include "core/event.h"
#include "dev/model.h"
#include "wire/consul.h"
#include "wire/fleet.h"
#include "wire/transaction_plan.h"

namespace lictor::core::test {

using Keys = std::vector<std::string>;

inline constexpr std::string_view kTasks = "tasks/";

/// The fate of one reply on its way, or a server that lags behind.
enum class Tamper {
  kNone,
  kStale,    // a read without ?consistent shows what was answered to an earlier one
  kRewound,  // X-Consul-Index went back
  kNoIndex,  // X-Consul-Index below 1
  // Acts of a proxy.
  kCut,         // the body ends early
  kTooMany,     // 429: Consul never saw it
  kError,       // 500, carried out or not
  kBadGateway,  // 502, carried out or not
};

struct Tampering {
  Tamper how = Tamper::kNone;
  double where = 0;  // of the body, of the index, among earlier answers: 0 to 1
};

class ModelStore {
 public:
  explicit ModelStore(std::uint64_t seed);
  /// The cost of writes in a transaction, as the product counts it on `node`.
  [[nodiscard]] std::shared_ptr<const CostModel> costs(std::string node = "a") const {
    return std::make_shared<wire::TransactionPlan>(binding_.layout, std::move(node));
  }

  /// The partition of the task, by the serialize_by of the number.
  [[nodiscard]] std::uint32_t partition_of(const Task& task) const;
  /// The next requests come from a daemon with another serialize_by. Every record has its key.
  void map_by_other(bool other) { binding_.layout.serialize_by = other ? "/other" : ""; }
  bool has_other = false;

  /// Names the daemon that sends the next requests.
  void speak_for(const std::string& node, std::uint64_t incarnation, Duration ttl,
                 Duration lock_delay);
  /// Consul's answer to a daemon's request.
  template <class Ask>
  requires(
      requires(const wire::Binding& binding, Ask ask) { wire::encode(binding, ask); } ||
      requires(const wire::Binding& binding, Ask ask) { wire::encode(binding, ask, WallTime{}); })
      [[nodiscard]] auto serve(Instant now, const Ask& effect) {
    now_ = now;
    return read_back(effect, ask(request_of(effect)));
  }
  TasksFetched serve(Instant now, const FetchTasks& effect);
  Committed serve(Instant now, const Commit& commit);
  /// The answer to a query that waits; std::nullopt: it still does.
  std::optional<LeaderRead> poll(const ReadLeader& effect, bool over) const;
  template <class Ask>
  requires(requires(const Ask& ask) {
    ask.index;
    ask.request;
  }) [[nodiscard]] auto poll(const Ask& effect, bool over) const {
    auto response = ask(request_of(effect), over);
    return response ? std::optional{read_back(effect, *std::move(response))} : std::nullopt;
  }

  // What other clients do.
  /// What a job would write for the task to be there.
  [[nodiscard]] std::string value_of(const Task& task);
  void put(const Task& task);
  void write(const std::string& key, const std::string& value, std::uint64_t flags = 0);
  /// Rewrites a task beside lictor's fields, which it keeps.
  void touch(const std::string& key, const std::string& bytes);
  /// Null: an unreadable one.
  void put_schedule(const std::string& name,
                    const std::shared_ptr<const schedule::Definition>& what);
  void remove(const std::string& key);
  /// "kv delete -recurse".
  void remove_tree(const std::string& prefix) {
    request("DELETE", "/v1/kv/" + prefix + "?recurse");
  }
  /// Everything of the queue but its dead letters, which are counted at the end.
  void remove_all();
  // The key of the first partition's leader.
  void remove_leader_key() { remove(binding_.layout.lock_key({count_, 0})); }
  void overwrite_leader_key() { write(binding_.layout.lock_key({count_, 0}), "a stranger"); }
  void control(bool paused, const std::string& step_down);
  void remove_control() { remove("control"); }
  void overwrite_control() { write("control", "nonsense"); }
  /// Ends the session, whose locks are in lock-delay then.
  void destroy(Instant now, const std::string& session);

  // Changes of Consul itself.
  void forget_lock_delay() { model_.forget_lock_delays(); }
  void restore(const dev::KvRecord& record) { model_.restore(record); }
  [[nodiscard]] dev::State snapshot() const { return model_.state(); }
  void restore(Instant now, const dev::State& snapshot);
  void fail_over(Instant now) { model_.fail_over(now); }
  void reap() { model_.reap(); }
  void expire_sessions(Instant now);
  [[nodiscard]] Instant next_expiry() const { return model_.next_deadline(); }

  /// Valid until the task is written again.
  [[nodiscard]] const Task* task(const std::string& key) const;
  /// Null: there is no such key.
  [[nodiscard]] const dev::KvRecord* find(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  [[nodiscard]] schedule::Definition schedule(const std::string& name) const;
  /// The keys without folders.
  [[nodiscard]] Keys keys(std::string_view prefix) const;
  [[nodiscard]] Keys task_keys() const { return keys(kTasks); }
  [[nodiscard]] bool has_tasks() const;
  /// Makes the key with the number of a queue with partitions; returns its ModifyIndex.
  std::uint64_t make_partitions(std::uint32_t count);
  [[nodiscard]] std::uint32_t partitions() const { return count_; }
  [[nodiscard]] std::uint64_t partitions_index() const;
  /// The answers for core::Division; the members are the cluster's.
  template <class Ask>
  [[nodiscard]] auto answer(const Ask& ask) {
    const http::Response response = this->ask(request_of(ask));
    learn_count();
    return wire::decode(binding_, ask, response);
  }
  /// Who holds the lock of the partition; empty: nobody.
  [[nodiscard]] const std::string& session_of(const Partition& partition) const;
  [[nodiscard]] const std::string& leader_session(std::uint32_t partition = 0) const {
    return session_of({count_, partition});
  }
  [[nodiscard]] std::uint64_t index() const { return model_.index(); }

  /// Spoils the next reply, until the next call.
  void tamper(Instant now, const Tampering& tampering) {
    now_ = now;
    tampering_ = tampering;
  }
  /// How often each happened.
  [[nodiscard]] std::map<Tamper, std::size_t> tampered() const { return tampered_; }
  /// Keeps the answers, for kStale.
  bool remembers = false;

  /// Whether the last commit was carried out, whatever was answered.
  [[nodiscard]] bool applied() const { return applied_; }
  /// The fault of the last applied transaction, as Consul saw it: a write that a deposed leader, or
  /// a daemon that knows an older version, could have made as well. Empty: none.
  [[nodiscard]] std::string fence_fault() const;
  /// Why the last commit is not what the product counts for it; empty: it is.
  [[nodiscard]] std::string cost_fault() const { return cost_fault_; }
  /// Keys outside the places of lictor's.
  [[nodiscard]] std::vector<std::string> strays() const;
  [[nodiscard]] std::size_t sessions() const { return model_.state().sessions().size(); }

  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();  // of a transaction
  std::size_t most_operations = limits::kMostOperations;             // the same, reads included
  std::map<std::string, BuryOp> dead;  // by their names: "dead/<id>" or longer
  std::vector<std::string> finished;   // the records that a FinishOp deleted
  // What jobs wrote with their finish, "key=value", and how often each tick's task was made.
  std::map<std::string, std::size_t> app_writes, ticks;
  // Keys that the daemons' token may not write; keys and listed prefixes that it may not read.
  std::set<std::string, std::less<>> no_right, unreadable;
  // The schedules of these names as read after tzdata was updated.
  std::map<std::string, std::shared_ptr<const schedule::Definition>> updated;

 private:
  template <class Ask>
  [[nodiscard]] http::Request request_of(const Ask& ask) const {
    if constexpr (requires { wire::encode(binding_, ask, WallTime{}); }) {
      return wire::encode(binding_, ask, WallTime{});
    } else {
      return wire::encode(binding_, ask);
    }
  }
  template <class Ask>
  [[nodiscard]] auto read_back(const Ask& ask, http::Response response) const {
    if constexpr (requires { wire::decode(ask, response); }) {
      return wire::decode(ask, response);
    } else {
      return wire::decode(binding_.layout, ask, std::move(response));
    }
  }
  [[nodiscard]] SchedulesListed read_back(const ListSchedules& ask,
                                          const http::Response& response) const;
  [[nodiscard]] std::optional<http::Response> ask(const http::Request& request, bool over) const;
  [[nodiscard]] http::Response ask(const http::Request& request) const;
  [[nodiscard]] std::optional<http::Response> refusal(const http::Request& request) const;
  void hide(const http::Request& request, http::Response& response) const;
  void spoil(const http::Request& request, http::Response& response) const;
  void request(const std::string& method, const std::string& target, std::string body = {});
  [[nodiscard]] Commit worded(const Commit& commit) const;
  void check_costs(const Commit& commit, const std::string& body);
  void translate(StoredRecord& record) const;
  void note(const Op& op, const std::map<std::string, std::string>& there);

  void learn_count();

  mutable dev::Model model_;
  std::uint32_t count_ = 1;  // of partitions
  wire::Binding binding_;
  Instant now_{};
  Tampering tampering_;
  bool applied_ = false;
  std::string cost_fault_;
  std::string last_body_;             // of the last commit, when it was a transaction and applied
  std::set<std::string> job_writes_;  // the keys that jobs wrote by it
  mutable bool carried_out_ = false;  // the last request, whatever was answered
  mutable std::map<Tamper, std::size_t> tampered_;
  mutable std::map<std::string, std::deque<std::pair<Instant, http::Response>>> earlier_;
  std::map<std::string, std::string> json_of_;                                        // by record
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> record_of_;  // by JSON
  // The tasks as the store held them, with lictor's fields.
  mutable std::unordered_map<std::string, std::shared_ptr<const std::string>> seen_;
  mutable std::unordered_map<std::string, std::pair<std::uint64_t, std::optional<Task>>> read_;
  mutable std::string session_;
  mutable wire::ScheduleCache schedules_;
};

/// The record of such a schedule. Its `configured` stands for all that a configuration says.
[[nodiscard]] std::string schedule_text(const schedule::Definition& definition);
/// The configuration's record of such a schedule.
[[nodiscard]] ConfiguredSchedule configured(const std::string& name,
                                            const schedule::Definition& definition,
                                            bool sets_paused = false);

}  // namespace lictor::core::test
