#pragma once

// In the place of the event-level store of the core's unit tests, with its interface: every effect
// is worded by src/wire, answered by the model of Consul (src/dev), and read back by src/wire.
//
// The core's records are opaque to it. Here, too, a record is what its producer called it
// ("record 12"); the store holds the JSON that stands for it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "dev/model.h"
#include "wire/consul.h"

namespace lictor::core::test {

inline constexpr std::string_view kTasks = "tasks/";

class FakeStore {
 public:
  explicit FakeStore(std::uint64_t seed);

  std::string create_session(Instant now, Duration ttl, Duration lock_delay);
  bool renew(Instant now, const std::string& session);
  void destroy(Instant now, const std::string& session);
  LockReplied lock(Instant now, const AcquireLock& effect, const std::string& node);
  UnlockReplied unlock(const ReleaseLock& effect);
  LeaderRead read_leader(const ReadLeader& effect) const;
  ControlRead read_control(const WatchControl& effect) const;
  TasksListed list(const ListTasks& effect) const;
  TasksFetched fetch(const FetchTasks& effect) const;
  HistoryListed list(const ListHistory& effect) const;
  Committed commit(const Commit& commit);

  void put(const Task& task);
  void put_bad(const std::string& key, const std::string& bytes, const std::string& error);
  void remove(const std::string& key);
  void overwrite_leader_key();
  void control(bool paused, const std::string& step_down);

  void fail_over(Instant now) { model_.fail_over(now); }
  void reap() {}  // the model reaps by itself
  void expire_sessions(Instant now);
  [[nodiscard]] Instant next_expiry() const { return model_.next_deadline(); }

  /// Valid until the next call of anything.
  [[nodiscard]] const Task* task(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> task_keys() const;
  [[nodiscard]] const std::string& leader_session() const;
  [[nodiscard]] std::uint64_t index() const { return model_.index(); }
  [[nodiscard]] std::uint64_t leader_index() const;
  [[nodiscard]] std::uint64_t control_index() const;

  std::map<std::string, BuryOp> dead;  // by "dead/<id>" and its copies
  std::vector<std::string> finished;   // the records that a FinishOp deleted
  std::map<std::string, std::size_t> app_writes;

 private:
  [[nodiscard]] http::Response ask(const http::Request& request) const;
  void write(const std::string& method, const std::string& target, std::string body = {});
  [[nodiscard]] Commit worded(const Commit& commit) const;
  void translate(StoredRecord& record) const;
  void note(const Commit& commit, const std::set<std::string>& there);

  mutable dev::Model model_;
  wire::Binding binding_;
  Instant now_{};
  std::map<std::string, std::string> json_of_;                                        // by record
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> record_of_;  // by JSON
  mutable std::optional<Task> found_;
  mutable std::string session_;
};

}  // namespace lictor::core::test
