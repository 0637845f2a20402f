#pragma once

// A model of one Consul 1.8 cluster as its HTTP API shows it: keys, sessions, transactions,
// blocking queries, with their peculiarities and the texts of their errors (consul.md; the code
// cites its sections). A differential test compares it with a real agent.
//
//   session: created -> renewed ... -> gone (destroyed, expired, invalidated)
//   key:     free -> locked -> free (released)
//                           -> free and in lock-delay (its session is gone) -> free
//
// Intended differences: an expiry falls anywhere between one and two TTLs, which is all that Consul
// promises; a blocking query on something that is missing, or on a session, wakes with every write
// to its table; one below a prefix that a transaction has written and then deleted as a tree wakes,
// where Consul forgets it; text after the JSON of a body is an error; the reasons of a 400 and of a
// bad duration have other words; a path that is not clean is refused, where Consul redirects; of
// unprintable characters in a path only control characters are refused; OPTIONS and the headers
// Allow and Vary are left out; services and checks are accepted and not kept, so serfHealth is the
// only check; there are no ACLs, namespaces and other datacenters.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/http.h"
#include "base/limits.h"
#include "base/random.h"
#include "dev/state.h"
#include "httpd/url.h"
#include "lictor/result.h"

namespace lictor::dev {

struct ModelOptions {
  std::uint64_t seed = 1;  ///< for session ids, and for the ends of sessions within one to two TTLs
  std::string node = "dev";
  /// If true, /v1/kv refuses names with other characters than a few or with "..", as from 1.21.5
  /// on; and a transaction refuses keys that begin with "/", as from 1.22.4 on.
  bool refuses_names = false;
  std::size_t max_operations = limits::kLeastOperations;  ///< of a transaction: of Consul 1.8
};

/// Pure: no thread, clock or socket; the same calls give the same answers. Not thread safe. `now`
/// must not fall from call to call.
class Model {
 public:
  explicit Model(ModelOptions options = {});

  /// Answers `request` as a Consul server would at `now`. A blocking query (?index=) that has
  /// no answer yet gets nullopt: ask again when index() has changed, or with `wait_over` after
  /// blocking_wait().
  [[nodiscard]] std::optional<http::Response> handle(Instant now, const http::Request& request,
                                                     bool wait_over = false);

  /// Lets time pass: sessions expire, lock-delays end, tombstones are reaped.
  void advance(Instant now);
  /// The time of advance()'s next work; Instant::max(): never.
  [[nodiscard]] Instant next_deadline() const;

  /// The raft index: grows with every write, also with one that changes nothing.
  [[nodiscard]] std::uint64_t index() const { return state_.index(); }
  [[nodiscard]] const State& state() const { return state_; }

  /// Sets the operations a transaction, as another version of Consul takes more, or fewer.
  void limit_operations(std::size_t most) { options_.max_operations = most; }

  // Faults, for simulations.
  /// A new leader: the TTL timers start again, in full (6.2).
  void fail_over(Instant now);
  /// All servers are restored from a snapshot, which holds no lock-delays.
  void forget_lock_delays() { lock_delays_.clear(); }
  /// The same, and the state is that of the snapshot: ended sessions live again.
  void restore(Instant now, const State& snapshot);
  /// All servers are restored from one in which only `record` differs from the state now.
  void restore(const KvRecord& record) {
    forget_lock_delays();
    state_.restore(record);
  }
  /// Tombstones are reaped early: indexes go back (4.3).
  void reap() { state_.reap(state_.index()); }
  /// Ends a session, as a failed check or an operator does. No such session: does nothing.
  void invalidate_session(Instant now, const std::string& id);

 private:
  using Answer = std::optional<http::Response>;
  struct Call {
    const http::Request& request;
    const httpd::Url& url;
    bool wait_over;
    Instant now;
  };

  [[nodiscard]] Answer route(const Call& call);
  /// Whether a blocking query whose result has this index must wait.
  [[nodiscard]] static bool blocks(const Call& call, std::uint64_t index);

  [[nodiscard]] Answer kv(const Call& call, const std::string& key);
  [[nodiscard]] Answer kv_get(const Call& call, const std::string& key) const;
  /// The keys under `prefix`, or (?keys) their names.
  [[nodiscard]] Answer kv_list(const Call& call, const std::string& prefix) const;
  [[nodiscard]] http::Response kv_put(const Call& call, const std::string& key);
  [[nodiscard]] http::Response kv_delete(const Call& call, const std::string& key);

  // Transactions; the order of the steps is in model_txn.cpp.
  struct TxnOp;
  [[nodiscard]] http::Response txn(const Call& call);
  [[nodiscard]] static Result<TxnOp> parse_txn_op(const nlohmann::json& item);
  /// The fault that Consul finds before the transaction gets its index; empty: none.
  [[nodiscard]] std::string precheck(const Call& call, const TxnOp& op) const;
  /// Appends to `results`; returns the fault, or nothing.
  [[nodiscard]] std::string apply(const TxnOp& op, std::string& results);
  [[nodiscard]] std::string check(const TxnOp& op, std::string& results) const;

  [[nodiscard]] Answer session(const Call& call, const std::string& path);
  [[nodiscard]] http::Response session_create(const Call& call);
  [[nodiscard]] http::Response session_renew(const Call& call, const std::string& id);
  [[nodiscard]] http::Response session_destroy(const Call& call, const std::string& id);
  [[nodiscard]] Answer session_list(const Call& call) const;
  [[nodiscard]] Answer session_info(const Call& call, const std::string& id) const;

  /// Empty: the session is live. Otherwise Consul's error.
  [[nodiscard]] std::string session_fault(const std::string& id) const;
  void start_timer(Instant now, const SessionRecord& session);
  /// Ends a session, however it ended: frees or deletes the keys that it holds, and bars them for
  /// its lock-delay, at most a minute.
  void end_session(Instant now, const std::string& id);
  /// The youngest tombstone, and all before it, are reaped 15 minutes from now.
  void schedule_reaping(Instant now);
  [[nodiscard]] bool in_lock_delay(Instant now, const std::string& key) const;

  ModelOptions options_;
  Random random_;
  State state_;
  std::map<std::string, Instant> expiries_;     // of sessions with a TTL
  std::map<std::string, Instant> lock_delays_;  // of keys
  std::map<Instant, std::uint64_t> reapings_;   // by time, the index up to which tombstones go
  std::uint64_t last_tombstone_ = 0;
};

/// How long `request` may block, without the sixteenth that Consul adds at random. std::nullopt if
/// it is not a blocking query.
[[nodiscard]] std::optional<Duration> blocking_wait(const http::Request& request);

}  // namespace lictor::dev
