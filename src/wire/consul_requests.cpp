// The core's effects as requests to Consul.

#include <utility>
#include <variant>

#include "base/time_text.h"
#include "core/mutant.h"
#include "core/write.h"
#include "wire/consul.h"
#include "wire/json_text.h"
#include "wire/record.h"
#include "wire/txn.h"

namespace lictor::wire {
namespace {

using core::mutant;
using core::Mutant;

http::Request request(const Binding& binding, std::string method, std::string target,
                      std::string body = {}) {
  http::Request r;
  r.method = std::move(method);
  r.target = std::move(target);
  r.body = std::move(body);
  r.timeout = binding.request_timeout;
  return r;
}

// "?index=" makes it a blocking query; its time-out must outlast wait * 17/16
// (CONSUL-FACTS.md 4.1).
http::Request read(const Binding& binding, std::string target, bool consistent,
                   std::uint64_t index) {
  const auto add = [&](std::string_view parameter) {
    target += target.find('?') == std::string::npos ? '?' : '&';
    target += parameter;
  };
  if (consistent) add("consistent");
  if (index != 0) {
    add("index=" + std::to_string(index));
    add("wait=" + std::to_string(binding.wait.count()) + "s");
  }
  http::Request r = request(binding, "GET", std::move(target));
  if (index != 0) {
    r.long_poll = true;
    r.timeout = std::chrono::milliseconds{binding.wait} * 17 / 16 + binding.request_timeout;
  }
  return r;
}

void add_op(const Binding& binding, const core::RestampOp& op, Txn& txn) {
  static_cast<void>(binding);
  txn.verb(mutant(Mutant::kNoCas) ? "set" : "cas", op.key)
      .index(op.index)
      .flags(mutant(Mutant::kFlagsDropped) ? 0 : op.flags)
      .value(restamp_record(*op.record, op.stamp, op.places));
}

void add_op(const Binding& binding, const core::FinishOp& op, Txn& txn) {
  // delete-cas also succeeds on a key that is gone (3.3): then nothing is to be written with it.
  const bool checked = (!op.writes.empty() || op.done) && !mutant(Mutant::kFinishUnchecked);
  const bool late = mutant(Mutant::kCheckAfterDelete);
  if (checked && !late) txn.verb("check-index", op.key).index(op.index);
  for (const core::KvWrite& write : op.writes) {
    if (write.erase) {
      txn.verb(write.cas ? "delete-cas" : "delete", write.key);
    } else {
      txn.verb(write.cas ? "cas" : "set", write.key).value(write.value);
    }
    if (write.cas) txn.index(*write.cas);
  }
  if (op.done) {
    txn.verb("set", binding.layout.done_key(op.key)).value(done_record(*op.done, binding.node));
  }
  txn.verb(mutant(Mutant::kPlainDelete) ? "delete" : "delete-cas", op.key).index(op.index);
  if (checked && late) txn.verb("check-index", op.key).index(op.index);
}

void add_op(const Binding& binding, const core::PruneOp& op, Txn& txn) {
  txn.verb("delete-cas", binding.layout.done_key(op.key)).index(op.index);
}

void add_op(const Binding& binding, const core::BuryOp& op, Txn& txn) {
  // delete-cas also succeeds on a key that is gone (3.3); check-index makes a withdrawn task fail.
  if (!mutant(Mutant::kBuryUnchecked)) txn.verb("check-index", op.key).index(op.index);
  txn.verb("cas", binding.layout.dead_key(op.key, op.copy))
      .index(0)
      .value(dead_letter(op, binding.node));
  txn.verb("delete-cas", op.key).index(op.index);
}

void add_op(const Binding& binding, const core::MarkOp& op, Txn& txn) {
  if (op.what == core::MarkOp::What::kControl) {
    txn.verb("cas", binding.layout.control_key).index(0).value("{}");
  } else {
    txn.verb("cas", binding.layout.tasks_prefix).index(0);
  }
}

}  // namespace

http::Request encode(const Binding& binding, const core::CreateSession&) {
  // Durations as text with a unit: bare numbers mean two things (CONSUL-FACTS.md 1.1).
  std::string checks;
  for (const std::string& check : binding.session_checks) {
    checks += (checks.empty() ? "" : ",") + json_quoted(check);
  }
  return request(binding, "PUT", "/v1/session/create",
                 R"({"Name":)" + json_quoted("lictor " + binding.queue + " " + binding.node) +
                     R"(,"TTL":")" + format_duration(binding.session_ttl) + R"(","LockDelay":")" +
                     format_duration(binding.lock_delay) +
                     R"(","Behavior":"release","NodeChecks":[)" + checks + "]}");
}

http::Request encode(const Binding& binding, const core::RenewSession& effect) {
  return request(binding, "PUT", "/v1/session/renew/" + query_value(effect.session));
}

http::Request encode(const Binding& binding, const core::DestroySession& effect) {
  return request(binding, "PUT", "/v1/session/destroy/" + query_value(effect.session));
}

http::Request encode(const Binding& binding, const core::AcquireLock& effect, WallTime at) {
  // As a transaction: ?acquire= answers a bare false both for a held lock and for the lock-delay,
  // and tells no ModifyIndex (2.2).
  Txn txn;
  std::string value = binding.leader_value.substr(0, binding.leader_value.rfind('}'));
  value += ",\"since\":" + json_quoted(format_rfc3339(at)) + '}';
  if (effect.held_at != 0) {
    txn.verb("check-index", binding.layout.leader_key).index(effect.held_at);
    txn.verb("check-session", binding.layout.leader_key).session(effect.session);
  }
  txn.verb("lock", binding.layout.leader_key).session(effect.session).value(value);
  return request(binding, "PUT", "/v1/txn", std::move(txn).body());
}

http::Request encode(const Binding& binding, const core::ReleaseLock& effect) {
  Txn txn;
  const bool unchecked = mutant(Mutant::kUnlockUnchecked) ||
                         (mutant(Mutant::kGiveBackUnchecked) && effect.index == 0);
  txn.verb(unchecked ? "get" : "check-index", binding.layout.leader_key)
      .index(effect.index);
  txn.verb("unlock", binding.layout.leader_key).session(effect.session);
  return request(binding, "PUT", "/v1/txn", std::move(txn).body());
}

http::Request encode(const Binding& binding, const core::ReadLeader& effect) {
  return read(binding, kv_path(binding.layout.leader_key),
              effect.consistent && !mutant(Mutant::kProofUnread), effect.index);
}

http::Request encode(const Binding& binding, const core::WatchControl& effect) {
  // The first is to miss no pause: a server that was deposed, or starts, may tell of an older one.
  return read(binding, kv_path(binding.layout.control_key), effect.index == 0, effect.index);
}

http::Request encode(const Binding& binding, const core::ListTasks& effect) {
  const std::string& below = effect.below.empty() ? binding.layout.tasks_prefix : effect.below;
  return read(binding, kv_path(below) + (effect.full ? "?recurse" : "?keys"), effect.consistent,
              effect.index);
}

http::Request encode(const Binding& binding, const core::FetchTasks& effect) {
  Txn txn;
  for (const std::string& key : effect.keys) txn.verb("get", key);
  return request(binding, "PUT", "/v1/txn?consistent", std::move(txn).body());
}

http::Request encode(const Binding& binding, const core::ListHistory&) {
  return read(binding, kv_path(binding.layout.done_prefix) + "?recurse", false, 0);
}

http::Request encode(const Binding& binding, const core::Commit& commit) {
  core::Cost cost = core::kFenceCost;
  for (const core::Op& op : commit.ops) cost += core::cost_of(op);
  Txn txn{cost.bytes};
  txn.verb(mutant(Mutant::kDropFence) ? "get" : "check-session", binding.layout.leader_key)
      .session(commit.session);
  for (const core::Op& op : commit.ops) {
    std::visit([&](const auto& o) { add_op(binding, o, txn); }, op);
  }
  return request(binding, "PUT", "/v1/txn", std::move(txn).body());
}

std::vector<http::Request> encode_plain(const Binding& binding, const core::Commit& commit) {
  std::vector<http::Request> requests;
  if (commit.ops.empty()) return requests;
  if (const auto* restamp = std::get_if<core::RestampOp>(&commit.ops.front())) {
    requests.push_back(request(binding, "PUT",
                               kv_path(restamp->key) + "?cas=" + std::to_string(restamp->index) +
                                   "&flags=" + std::to_string(restamp->flags),
                               restamp_record(*restamp->record, restamp->stamp, restamp->places)));
  } else if (const auto* finish = std::get_if<core::FinishOp>(&commit.ops.front())) {
    // Of a key so long that even a delete-cas is large.
    requests.push_back(
        request(binding, "DELETE", kv_path(finish->key) + "?cas=" + std::to_string(finish->index)));
  } else if (const auto* bury = std::get_if<core::BuryOp>(&commit.ops.front())) {
    requests.push_back(request(binding, "PUT",
                               kv_path(binding.layout.dead_key(bury->key, bury->copy)) + "?cas=0",
                               dead_letter(*bury, binding.node)));
    requests.push_back(
        request(binding, "DELETE", kv_path(bury->key) + "?cas=" + std::to_string(bury->index)));
  }
  return requests;
}

}  // namespace lictor::wire
