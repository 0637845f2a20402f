#include "cluster/member.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/control.h"
#include "client/task_info.h"
#include "wire/layout.h"

namespace lictor::cluster {

using client::text_of;
using client::text_or_null;
using nlohmann::json;
using nlohmann::ordered_json;

// The entry may be of any version: a field that is missing stays empty.
Member member_of(std::string name, const std::string& value) {
  Member member{std::move(name)};
  const auto parsed = parse_json(value);
  if (!parsed || !parsed->is_object()) return member;
  if (const std::string node = text_of(*parsed, "node"); !node.empty()) member.node = node;
  for (const auto& [field, text] : {std::pair{"host", &member.host},
                                    {"pid", &member.pid},
                                    {"version", &member.version},
                                    {"since", &member.since},
                                    {"config", &member.config},
                                    {"reload_error", &member.reload_error},
                                    {"seen", &member.seen}}) {
    *text = text_of(*parsed, field);
  }
  const json parts = parsed->value("parts", json::object());
  for (const auto& [part, digest] : parts.items()) {
    if (digest.is_string()) member.parts.emplace(part, digest);
  }
  const json history = parsed->value("history", json::array());
  for (const json& queue : history) {
    if (queue.is_string()) member.history.push_back(queue);
  }
  member.desired_partitions = wire::queue_numbers(*parsed, "partitions");
  const json admin = parsed->value("admin", json::array());
  for (const json& url : admin.is_array() ? admin : json::array({admin})) {
    if (url.is_string() && !url.get<std::string>().empty()) member.admin.push_back(url);
  }
  return member;
}

ordered_json member_json(const Member& member, const std::string& queue) {
  const ordered_json pid = ordered_json::parse(member.pid, nullptr, false);
  return {{"node", member.node},
          {"host", text_or_null(member.host)},
          {"pid", pid.is_number() ? pid : text_or_null(member.pid)},
          {"version", text_or_null(member.version)},
          {"since", text_or_null(member.since)},
          {"seen", text_or_null(member.seen)},
          {"config", text_or_null(member.config)},
          {"admin", member.admin},
          {"leads", member.leads},
          {"partitions", member.partitions},
          {"draining", member.draining},
          {"partitions_wanted", wire::number_of(member.desired_partitions, queue)},
          {"answers", member.answers ? ordered_json(*member.answers) : ordered_json{}},
          {"doubt", text_or_null(unresponsive_reason(member))}};
}

const Member* find_member(const std::vector<Member>& members, const std::string& node) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.node == node; });
  return found == members.end() ? nullptr : &*found;
}

Result<std::vector<Member>> read_members(client::Store& store, const wire::Layout& layout,
                                         const client::Locks& locks) {
  LICTOR_TRY(const auto listed, store.list(layout.members_prefix));
  const auto held = partitions_by_leader(locks);
  std::set<std::string_view> keys;
  for (const wire::KvEntry& entry : listed.entries) keys.insert(entry.key);
  std::vector<Member> members;
  for (const wire::KvEntry& entry : listed.entries) {
    std::string name = entry.key.substr(layout.members_prefix.size());
    // A daemon's entry is held by a session; somebody wrote this one by hand.
    if (name.find('/') != std::string::npos || entry.session.empty()) continue;
    Member member = member_of(name, entry.value);
    member.draining = keys.contains(client::drain_key(layout, name));
    if (const auto own = held.find(member.node); own != held.end()) member.partitions = own->second;
    member.leads = !member.partitions.empty();
    members.push_back(std::move(member));
  }
  return members;
}

Result<std::vector<Member>> read_members(client::Store& store, const wire::Layout& layout) {
  return read_members(store, layout, client::locks_if_known(client::read_locks(store, layout)));
}

std::string unresponsive_reason(const Member& member) {
  const auto seen = parse_rfc3339(member.seen);
  const WallTime now = wall_now();
  const std::string last = seen ? "last seen " + relative_time(*seen, now) : std::string{};
  if (!member.silence.empty()) return member.silence + (seen ? "; " + last : last);
  if (member.answers == true) return {};  // then its clock is behind
  return seen && now - *seen > kLateEntry ? "was " + last : std::string{};
}

std::string ranges(const Partitions& partitions) {
  std::string text;
  for (std::size_t i = 0; i < partitions.size();) {
    std::size_t last = i;
    while (last + 1 < partitions.size() && partitions[last + 1] == partitions[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(partitions[i]);
    if (last > i) text += '-' + std::to_string(partitions[last]);
    i = last + 1;
  }
  return text;
}

std::string partitions_text(const Partitions& partitions) {
  return (partitions.size() == 1 ? "partition " : "partitions ") + ranges(partitions);
}

Partitions free_partitions(const client::Locks& locks) {
  Partitions free;
  for (const client::LockView& lock : locks) {
    if (lock.known && lock.session.empty()) free.push_back(lock.partition.number);
  }
  return free;
}

std::map<std::string, Partitions> partitions_by_leader(const client::Locks& locks) {
  std::map<std::string, Partitions> held;
  for (const client::LockView& lock : locks) {
    if (!lock.session.empty()) held[lock.name()].push_back(lock.partition.number);
  }
  return held;
}

}  // namespace lictor::cluster
