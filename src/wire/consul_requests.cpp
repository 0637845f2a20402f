// The core's effects as requests to Consul.

#include <utility>

#include "base/assert.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "base/time_text.h"
#include "wire/consul.h"
#include "wire/transaction_plan.h"
#include "wire/txn.h"

namespace lictor::wire {
namespace {

http::Request put(const Binding& binding, std::string target, std::string body = {}) {
  return http::put(std::move(target), std::move(body), binding.request_timeout);
}

// Marks a request that leadership depends on.
http::Request urgent(http::Request request) {
  request.urgent = true;
  return request;
}

// How long a blocking query waits; Consul adds up to a sixteenth (consul.md 4.1). Consul from
// 1.22.4 on, and many proxies, cut an answer off after 30 s. This also bounds how long a wrong
// index goes unnoticed (4.4).
constexpr std::chrono::seconds kWait{25};

enum class Pace { kPrompt, kCalm };

// "?index=" makes it a blocking query.
http::Request read(const Binding& binding, std::string target, bool consistent, std::uint64_t index,
                   Pace pace = Pace::kCalm) {
  const auto add = [&](std::string_view parameter) {
    target += target.find('?') == std::string::npos ? '?' : '&';
    target += parameter;
  };
  if (consistent) add("consistent");
  if (index != 0) add("index=" + std::to_string(index));
  http::Request request;
  request.target = std::move(target);
  request.timeout = binding.request_timeout;
  if (index != 0) {
    request.long_poll = true;
    request.watch = http::Watch{index, kWait, pace == Pace::kPrompt};
  }
  return request;
}

// Makes a long answer over a slow link fail when bytes stop coming, not while they come.
http::Request until_silence(http::Request request) {
  constexpr std::chrono::minutes kLongest{2};
  request.silence = std::exchange(request.timeout, kLongest);
  return request;
}

// The leader key's value: the leader's, with its lock_delay, and when it was locked ("since") or
// released in order ("released"). If the key is free and has no "released", its holder was lost.
std::string leader_value(const Binding& binding, std::string_view member, WallTime at) {
  std::string value = binding.leader_value.substr(0, binding.leader_value.rfind('}'));
  value += R"(,"lock_delay":")" + format_duration(binding.lock_delay) + "\",\"";
  value += member;
  return value + "\":" + json_quoted(format_rfc3339(at)) + '}';
}

}  // namespace

// Without ?consistent a server that has just started answers from an old state.
http::Request read_transaction(const Binding& binding, Txn txn) {
  http::Request request = put(binding, "/v1/txn?consistent", std::move(txn).body());
  request.only_reads = true;
  return request;
}

http::Request quorum_read(const Binding& binding, std::string target) {
  return read(binding, std::move(target), true, 0);
}

http::Request blocking_read(const Binding& binding, std::string target, std::uint64_t index) {
  return read(binding, std::move(target), false, index, Pace::kPrompt);
}

http::Request encode(const Binding& binding, const core::CreateSession&) {
  // Durations as text with a unit: bare numbers mean two things (consul.md 1.1).
  std::string checks;
  for (const std::string& check : binding.session_checks) {
    checks += (checks.empty() ? "" : ",") + json_quoted(check);
  }
  return put(binding, "/v1/session/create",
             R"({"Name":)" + json_quoted("lictor " + binding.queue + " " + binding.node) +
                 R"(,"TTL":")" + format_duration(binding.session_ttl) + R"(","LockDelay":")" +
                 format_duration(binding.lock_delay) + R"(","Behavior":"release","NodeChecks":[)" +
                 checks + "]}");
}

http::Request encode(const Binding& binding, const core::RenewSession& effect) {
  return urgent(put(binding, "/v1/session/renew/" + query_value(effect.session)));
}

http::Request encode(const Binding& binding, const core::DestroySession& effect) {
  return put(binding, "/v1/session/destroy/" + query_value(effect.session));
}

http::Request encode(const Binding& binding, const core::AcquireLock& effect, WallTime at) {
  // A transaction, because ?acquire= answers false both for a held lock and for the lock-delay, and
  // returns no ModifyIndex (2.2).
  Txn txn;
  const std::string key = binding.layout.lock_key(effect.partition);
  if (effect.count_index != 0) {
    txn.verb("check-index", binding.layout.partitions_key).index(effect.count_index);
  }
  if (effect.if_single) txn.verb("check-not-exists", binding.layout.partitions_key);
  if (effect.held_at != 0) {
    txn.verb("check-index", key).index(effect.held_at);
    txn.verb("check-session", key).session(effect.session);
  } else if (effect.free_at != 0) {
    txn.verb("check-index", key).index(effect.free_at);
  } else {
    txn.verb("check-not-exists", key);
  }
  txn.verb("lock", key).session(effect.session).value(leader_value(binding, "since", at));
  return put(binding, "/v1/txn", std::move(txn).body());
}

// "released" in the value tells candidates that no job can run any more, so they need not wait.
http::Request encode(const Binding& binding, const core::ReleaseLock& effect, WallTime at) {
  Txn txn;
  const std::string key = binding.layout.lock_key(effect.partition);
  txn.verb("check-index", key).index(effect.index);
  txn.verb("unlock", key).session(effect.session).value(leader_value(binding, "released", at));
  return urgent(put(binding, "/v1/txn", std::move(txn).body()));
}

http::Request encode(const Binding& binding, const core::ReadLeader& effect) {
  http::Request request =
      read(binding, kv_path(binding.layout.lock_key(effect.partition)), effect.consistent,
           effect.index, effect.held ? Pace::kCalm : Pace::kPrompt);
  request.urgent = effect.consistent;
  return request;
}

http::Request encode(const Binding& binding, const core::WatchControl& effect) {
  // The first read is consistent: a deposed or starting server may not know of a pause yet.
  return read(binding, kv_path(binding.layout.control_key), effect.index == 0, effect.index);
}

// Asks for names only: a value is read when its version is new (core/reading/task_source.h).
http::Request encode(const Binding& binding, const core::ListTasks& effect) {
  http::Request request = read(binding, kv_path(binding.layout.tasks_prefix) + "?keys",
                               effect.index == 0, effect.index, Pace::kPrompt);
  return effect.index == 0 ? until_silence(std::move(request)) : request;
}

http::Request encode(const Binding& binding, const core::FetchTasks& effect) {
  LICTOR_ASSERT(effect.keys.size() <= limits::kMostOperations);
  Txn txn;
  for (const std::string& key : effect.keys) txn.verb("get", key);
  return until_silence(read_transaction(binding, std::move(txn)));
}

http::Request encode(const Binding& binding, const core::CheckTasks& effect) {
  Txn txn;
  for (const auto& [key, index] : effect.versions) txn.verb("check-index", key).index(index);
  return read_transaction(binding, std::move(txn));
}

http::Request encode(const Binding& binding, const core::ListHistory&) {
  return until_silence(read(binding, kv_path(binding.layout.done_prefix) + "?recurse", false, 0));
}

http::Request encode(const Binding& binding, const core::ListSchedules& effect) {
  return read(binding, kv_path(binding.layout.schedules_prefix) + "?recurse", effect.index == 0,
              effect.index);
}

http::Request encode(const Binding& binding, const core::ReadRate&) {
  return read(binding, kv_path(binding.layout.rate_key), true, 0);
}

http::Request encode(const Binding& binding, const core::Commit& commit) {
  return put(binding, "/v1/txn", transaction_body(binding.layout, binding.node, commit));
}

}  // namespace lictor::wire
