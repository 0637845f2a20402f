#include "wire/fleet.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/siphash.h"
#include "base/text.h"
#include "base/time_text.h"
#include "core/partition.h"
#include "wire/kv_reply.h"
#include "wire/txn.h"

namespace lictor::wire {
namespace {

using nlohmann::json;
using Answer = core::DivisionReply::Answer;

constexpr const char* kDrainMark = "/drain";
// The most checks of locks in a transaction that every Consul takes.
constexpr std::uint32_t kMostChecks = limits::kLeastOperations - 2;

// A missing or wrong field counts as 1: an entry of another version must not move partitions.
core::FleetMember member_of(const Binding& binding, std::string node, std::string_view value) {
  core::FleetMember member;
  member.member.id = std::move(node);
  const json entry = parse_json(value).value_or(json{});
  member.desired_partitions = number_of(queue_numbers(entry, "partitions"), binding.queue);
  member.member.weight = number_of(queue_numbers(entry, "weights"), binding.queue);
  return member;
}

// The flags of the number. Every version must agree, so it may not change.
std::uint64_t mapping_flags(const Layout& layout) {
  if (layout.serialize_by.empty()) return 0;
  return siphash<2, 4>(core::kPartitionKey, layout.serialize_by);
}

void add_count(Txn& txn, const Layout& layout, std::uint32_t count, std::uint64_t index) {
  txn.verb("cas", layout.partitions_key).value(std::to_string(count));
  txn.index(index).flags(mapping_flags(layout));
}

http::Request put(const Binding& binding, Txn txn) {
  return http::put("/v1/txn", std::move(txn).body(), binding.request_timeout);
}

std::string needed_rules(const Binding& binding) {
  return "; the token needs the rules key \"" + binding.layout.partitions_key +
         R"(" { policy = "write" } and key_prefix ")" + binding.layout.leader_key +
         R"(/" { policy = "write" })";
}

bool is_denial(std::string_view error) { return contains(error, "Permission denied"); }

// Whether the same request would be refused again. After a failed condition that need not be so.
bool is_refusal(const http::Response& response) {
  return response.delivery == http::Delivery::kReplied && response.status >= 400 &&
         response.status < 500 && !http::over_limit(response);
}

}  // namespace

core::DivisionReply txn_answer(const Binding& binding, const http::Response& response) {
  const auto reply = txn_reply(response);
  if (reply && response.status == 200) return {Answer::kYes, {}};
  std::string error = describe(response);
  if (reply && !reply->errors.empty()) {
    const auto denied = std::find_if(reply->errors.begin(), reply->errors.end(),
                                     [](const auto& each) { return is_denial(each.what); });
    error = denied == reply->errors.end() ? reply->errors.front().what : denied->what;
  }
  if (is_denial(error)) return {Answer::kRefused, error + needed_rules(binding)};
  if (!is_refusal(response)) return {Answer::kUnknown, std::move(error)};
  return {response.status == 409 ? Answer::kNo : Answer::kRefused, std::move(error)};
}

Result<std::uint32_t> read_count(std::string_view value) {
  const auto count = to_number<std::uint32_t>(trimmed(value));
  if (count && *count >= 1 && *count <= core::kMostPartitions) return *count;
  return fail(ErrorCode::kInvalid, "expected the number of partitions, from 1 to " +
                                       std::to_string(core::kMostPartitions) + ", got \"" +
                                       excerpt(value) + '"');
}

QueueNumbers queue_numbers(const json& entry, const char* name) {
  QueueNumbers numbers;
  const json& given = json_member(entry, name);
  if (!given.is_object()) return numbers;
  for (const auto& [queue, number] : given.items()) {
    if (!number.is_number_unsigned()) continue;
    numbers[queue] = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(number.get<std::uint64_t>(), 1, core::kMostPartitions));
  }
  return numbers;
}

std::uint32_t number_of(const QueueNumbers& numbers, std::string_view queue) {
  const auto number = numbers.find(queue);
  return number == numbers.end() ? 1 : number->second;
}

http::Request encode(const Binding& binding, const core::ReadFleet& ask) {
  Txn txn;
  txn.verb("get-tree", binding.layout.members_prefix);
  txn.verb("get-tree", binding.layout.partitions_key);
  if (ask.with_locks) txn.verb("get-tree", binding.layout.leader_key);
  return read_transaction(binding, std::move(txn));
}

// A member is an entry that a session holds. Entries without a session were written by hand, and
// keys below an entry are no members: members/<node>/drain means that an operator wants the node to
// lead nothing.
core::FleetRead decode(const Binding& binding, const core::ReadFleet&,
                       const http::Response& response) {
  core::FleetRead read;
  const auto reply = txn_reply(response);
  if (!reply || response.status != 200) {
    const core::DivisionReply answer = txn_answer(binding, response);
    read.error = describe(response);
    read.refused = answer.answer == Answer::kRefused && is_denial(answer.error);
    return read;
  }
  const Layout& layout = binding.layout;
  const std::string below_leader = layout.leader_key + '/';
  std::vector<std::string> draining;
  for (const KvEntry& entry : reply->results) {
    const std::string_view key = entry.key;
    if (key == layout.partitions_key) {
      const auto count = read_count(entry.value);
      if (!count) {
        read.error = layout.partitions_key + ": " + count.error().message;
        return read;
      }
      read.count = *count;
      read.count_index = entry.modify_index;
      read.maps_otherwise = entry.flags != mapping_flags(layout);
    } else if (key == layout.leader_key || key.starts_with(below_leader)) {
      const std::string_view below = key.substr(std::min(key.size(), below_leader.size()));
      const auto number = to_number<std::uint32_t>(below.substr(0, below.find('/')));
      read.locks.push_back({entry.key, leader_read(entry), number.value_or(1)});
    } else if (key.starts_with(layout.members_prefix)) {
      std::string node{key.substr(layout.members_prefix.size())};
      if (node.ends_with(kDrainMark)) {
        draining.push_back(node.substr(0, node.find('/')));
      } else if (!entry.session.empty() && node.find('/') == std::string::npos) {
        read.members.push_back(member_of(binding, std::move(node), entry.value));
      }
    }
  }
  for (core::FleetMember& each : read.members) {
    each.member.draining =
        std::find(draining.begin(), draining.end(), each.member.id) != draining.end();
  }
  return read;
}

http::Request encode(const Binding& binding, const core::ReadCount&) {
  return quorum_read(binding, kv_path(binding.layout.partitions_key));
}

// Writes the leader key too, so that a daemon that saw it free does not acquire it for that reason.
http::Request encode(const Binding& binding, const core::CreateCount& ask, WallTime at) {
  const std::string& leader_key = binding.layout.leader_key;
  const std::string count = std::to_string(ask.count);
  const std::string free =
      R"({"partitions":)" + count + R"(,"released":)" + json_quoted(format_rfc3339(at)) + '}';
  Txn txn;
  std::uint64_t leader_index = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(ask.locks.size(), kMostChecks); ++i) {
    const core::FleetRead::Lock& lock = ask.locks[i];
    if (lock.key == leader_key) {
      leader_index = lock.read.modify_index;
    } else {
      txn.verb("check-index", lock.key).index(lock.read.modify_index);
    }
  }
  txn.verb("cas", leader_key).value(free).index(leader_index);
  add_count(txn, binding.layout, ask.count, ask.count_index);
  return put(binding, std::move(txn));
}

http::Request encode(const Binding& binding, const core::ProbeSingle&) {
  Txn txn;
  txn.verb("check-not-exists", binding.layout.partitions_key);
  return read_transaction(binding, std::move(txn));
}

// Never applied, since a key cannot both exist and not exist. Consul checks the rights to all
// operations first.
http::Request encode(const Binding& binding, const core::ProbeChange& ask) {
  const std::string& key = binding.layout.partitions_key;
  Txn txn;
  txn.verb("check-not-exists", key);
  txn.verb("check-index", key).index(1);
  txn.verb("cas", key).index(0).value({});
  txn.verb("cas", binding.layout.lock_key({ask.to, 0})).index(0).value({});
  return put(binding, std::move(txn));
}

// Deletes as many as fit; the next reading finds the others.
http::Request encode(const Binding& binding, const core::DeleteLocks& ask) {
  Txn txn;
  for (std::size_t i = 0; i < std::min<std::size_t>(ask.locks.size(), kMostChecks); ++i) {
    txn.verb("delete-cas", ask.locks[i].key).index(ask.locks[i].read.modify_index);
  }
  return put(binding, std::move(txn));
}

// A session that holds one lock is alive, and so holds all locks that it acquired.
http::Request encode(const Binding& binding, const core::ChangeCount& ask) {
  const std::string& key = binding.layout.partitions_key;
  Txn txn;
  for (std::uint32_t i = 0; i < std::min(ask.from, kMostChecks); ++i) {
    txn.verb("check-session", binding.layout.lock_key({ask.from, i})).session(ask.session);
  }
  if (ask.to == 1) {
    txn.verb("delete-cas", key).index(ask.count_index);
  } else {
    add_count(txn, binding.layout, ask.to, ask.count_index);
  }
  return put(binding, std::move(txn));
}

core::DivisionReply decode(const Binding& binding, const core::ReadCount&,
                           const http::Response& response) {
  if (http::replied(response, 200)) return {Answer::kYes, {}};
  if (http::replied(response, 404) && response.consul_index != 0) return {Answer::kNo, {}};
  // A token that does not exist (yet, on this agent) proves nothing about the key.
  const bool denied =
      http::replied(response, 403) && response.body.find("ACL not found") == std::string::npos;
  if (!denied) return {Answer::kUnknown, describe(response)};
  return {Answer::kRefused, R"(the token needs the rule key ")" + binding.layout.partitions_key +
                                R"(" { policy = "read" })"};
}

// Two answers count: there is no number, or the token may not ask.
core::DivisionReply decode(const Binding& binding, const core::ProbeSingle&,
                           const http::Response& response) {
  core::DivisionReply reply = txn_answer(binding, response);
  const bool is_known = reply.answer == Answer::kYes || is_denial(reply.error);
  if (!is_known) reply.answer = Answer::kUnknown;
  return reply;
}

// kNo is the good answer: the rights sufficed, and then the checks that exclude each other failed.
core::DivisionReply decode(const Binding& binding, const core::ProbeChange&,
                           const http::Response& response) {
  core::DivisionReply reply = txn_answer(binding, response);
  if (reply.answer == Answer::kNo) return {Answer::kYes, {}};
  if (!is_denial(reply.error)) reply.answer = Answer::kUnknown;
  return reply;
}

http::Request encode(const Binding& binding, const core::ReadOwners&) {
  return quorum_read(binding, kv_path(binding.layout.members_prefix) + "?recurse");
}

core::OwnersRead decode(const Binding& binding, const core::ReadOwners& ask,
                        const http::Response& response) {
  core::OwnersRead read;
  read.request = ask.request;
  const auto entries = read_entries(response);
  if (!entries) {
    read.error = entries.error().message;
    read.refused = is_refusal(response);
    return read;
  }
  read.ok = true;
  const std::string& prefix = binding.layout.members_prefix;
  for (const KvEntry& entry : *entries) {
    const json value = parse_json(entry.value).value_or(json{});
    std::string nonce = text_member(json_member(value, "given_up"), binding.queue.c_str());
    if (entry.session.empty() || nonce.empty() || !entry.key.starts_with(prefix)) continue;
    read.given_up[entry.key.substr(prefix.size())] = std::move(nonce);
  }
  return read;
}

http::Request watch_locks(const Binding& binding, std::uint32_t count, std::uint64_t index) {
  return blocking_read(
      binding, kv_path(binding.layout.leader_key + '/' + std::to_string(count) + '/') + "?recurse",
      index);
}

LocksRead decode_locks(const Binding& binding, std::uint32_t count,
                       const http::Response& response) {
  LocksRead read;
  read.consul_index = response.consul_index;
  read.over_limit = http::over_limit(response);
  const auto entries = read_entries(response);
  if (!entries) {
    read.error = entries.error().message;
    return read;
  }
  read.ok = true;
  read.locks.resize(count);
  for (core::LeaderRead& lock : read.locks) {
    lock.ok = true;
    lock.consul_index = read.consul_index;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string key = binding.layout.lock_key({count, i});
    const auto entry = std::find_if(entries->begin(), entries->end(),
                                    [&](const KvEntry& each) { return each.key == key; });
    if (entry == entries->end()) continue;
    read.locks[i] = leader_read(*entry);
    read.locks[i].consul_index = read.consul_index;
  }
  return read;
}

}  // namespace lictor::wire
