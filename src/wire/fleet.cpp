#include "wire/fleet.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "base/time_text.h"
#include "core/partition.h"
#include "wire/json_text.h"
#include "wire/kv_reply.h"
#include "wire/txn.h"

namespace lictor::wire {
namespace {

using nlohmann::json;

constexpr const char* kDrainMark = "/drain";
// Of locks, in a transaction that every Consul takes.
constexpr std::uint32_t kMostChecks = limits::kLeastOperations - 2;

core::FleetMember member_of(const Binding& binding, std::string node, std::string_view value) {
  core::FleetMember member;
  member.member.id = std::move(node);
  const json told = parse_json(value).value_or(json{});
  member.wish = number_of(queue_numbers(told, "partitions"), binding.queue);
  member.member.weight = number_of(queue_numbers(told, "weights"), binding.queue);
  return member;
}

http::Request put(const Binding& binding, Txn txn) {
  return http::put("/v1/txn", std::move(txn).body(), binding.request_timeout);
}

std::string needed_rules(const Binding& binding) {
  return "; the token needs the rules key \"" + binding.layout.partitions_key +
         R"(" { policy = "write" } and key_prefix ")" + binding.layout.leader_key +
         R"(/" { policy = "write" })";
}

}  // namespace

Result<std::uint32_t> read_count(std::string_view value) {
  const auto count = to_number<std::uint32_t>(trimmed(value));
  if (count && *count >= 1 && *count <= core::kMostPartitions) return *count;
  return fail(ErrorCode::kInvalid, "expected the number of partitions, from 1 to " +
                                       std::to_string(core::kMostPartitions) + ", got \"" +
                                       excerpt(value) + '"');
}

QueueNumbers queue_numbers(const json& entry, const char* name) {
  QueueNumbers numbers;
  const auto given = entry.find(name);
  if (given == entry.end() || !given->is_object()) return numbers;
  for (const auto& [queue, number] : given->items()) {
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

http::Request read_fleet(const Binding& binding, bool with_locks) {
  Txn txn;
  txn.verb("get-tree", binding.layout.members_prefix);
  txn.verb("get-tree", binding.layout.partitions_key);
  if (with_locks) txn.verb("get-tree", binding.layout.leader_key);
  http::Request request = put(binding, std::move(txn));
  request.only_reads = true;
  return request;
}

FleetRead decode_fleet(const Binding& binding, const http::Response& response) {
  FleetRead read;
  const auto reply = txn_reply(response);
  if (!reply || response.status != 200) {
    read.error = describe(response);
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
    } else if (key == layout.leader_key || key.starts_with(below_leader)) {
      read.locks.push_back({entry.key, leader_read(entry)});
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

// Writes the leader key too, so that a daemon that saw it free does not acquire it on that ground.
http::Request create_count(const Binding& binding, std::uint32_t count,
                           const std::vector<FleetRead::Lock>& locks, WallTime at) {
  const std::string& leader_key = binding.layout.leader_key;
  const std::string free = R"({"partitions":)" + std::to_string(count) + R"(,"released":)" +
                           json_quoted(format_rfc3339(at)) + '}';
  Txn txn;
  std::uint64_t leader_index = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(locks.size(), kMostChecks); ++i) {
    const FleetRead::Lock& lock = locks[i];
    if (lock.key == leader_key) {
      leader_index = lock.read.modify_index;
    } else {
      txn.verb("check-index", lock.key).index(lock.read.modify_index);
    }
  }
  txn.verb("cas", leader_key).value(free).index(leader_index);
  txn.verb("cas", binding.layout.partitions_key).value(std::to_string(count));
  return put(binding, std::move(txn));
}

http::Request probe_undivided(const Binding& binding) {
  Txn txn;
  txn.verb("check-not-exists", binding.layout.partitions_key);
  http::Request request = put(binding, std::move(txn));
  request.only_reads = true;
  return request;
}

// Never applied, since a key cannot both exist and not exist. Consul checks the rights to all
// operations first.
http::Request probe_change(const Binding& binding, std::uint32_t to) {
  const std::string& key = binding.layout.partitions_key;
  Txn txn;
  txn.verb("check-not-exists", key);
  txn.verb("check-index", key).index(1);
  txn.verb("cas", key).index(0).value({});
  txn.verb("cas", binding.layout.lock_key({to, 0})).index(0).value({});
  return put(binding, std::move(txn));
}

std::optional<bool> may_change(const Binding& binding, const http::Response& response,
                               std::string& error) {
  if (const auto reply = txn_reply(response); reply && response.status == 409) {
    const auto denied = std::find_if(reply->errors.begin(), reply->errors.end(),
                                     [](const auto& each) { return is_denied(each.what); });
    if (denied == reply->errors.end()) return true;
    error = denied->what + needed_rules(binding);
    return false;
  }
  error = describe(response);
  if (!is_denied(error)) return std::nullopt;
  error += needed_rules(binding);
  return false;
}

// A session that holds one lock is alive, and so holds all that it acquired.
http::Request change_count(const Binding& binding, std::uint32_t to, std::uint32_t from,
                           std::uint64_t count_index, std::string_view session) {
  Txn txn;
  for (std::uint32_t i = 0; i < std::min(from, kMostChecks); ++i) {
    txn.verb("check-session", binding.layout.lock_key({from, i})).session(session);
  }
  if (to == 1) {
    txn.verb("delete-cas", binding.layout.partitions_key).index(count_index);
  } else {
    txn.verb("cas", binding.layout.partitions_key).value(std::to_string(to)).index(count_index);
  }
  return put(binding, std::move(txn));
}

bool is_count_written(const Binding& binding, const http::Response& response, std::string& error) {
  const auto reply = txn_reply(response);
  if (reply && response.status == 200) return true;
  error = reply && !reply->errors.empty() ? reply->errors.front().what : describe(response);
  if (is_denied(error)) error += needed_rules(binding);
  return false;
}

bool is_denied(std::string_view error) {
  return error.find("Permission denied") != std::string_view::npos;
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
