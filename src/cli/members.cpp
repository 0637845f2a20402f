#include "cli/members.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/faces.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "client/control.h"
#include "client/retry.h"
#include "core/balancer.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::cli {

using nlohmann::json;
using nlohmann::ordered_json;

Member member_of(std::string name, const std::string& value) {
  Member member{std::move(name)};
  const auto parsed = wire::parse_json(value);
  if (!parsed || !parsed->is_object()) return member;
  if (const std::string node = text_of(*parsed, "node"); !node.empty()) member.node = node;
  member.host = text_of(*parsed, "host");
  member.pid = text_of(*parsed, "pid");
  member.version = text_of(*parsed, "version");
  member.since = text_of(*parsed, "since");
  member.config = text_of(*parsed, "config");
  member.reload_error = text_of(*parsed, "reload_error");
  const json parts = parsed->value("parts", json::object());
  for (const auto& [part, digest] : parts.items()) {
    if (digest.is_string()) member.parts.emplace(part, digest);
  }
  member.seen = text_of(*parsed, "seen");
  const json history = parsed->value("history", json::array());
  for (const json& queue : history) {
    if (queue.is_string()) member.history.push_back(queue);
  }
  member.wishes = wire::queue_numbers(*parsed, "partitions");
  member.weights = wire::queue_numbers(*parsed, "weights");
  const json admin = parsed->value("admin", json::array());
  for (const json& url : admin.is_array() ? admin : json::array({admin})) {
    if (url.is_string() && !url.get<std::string>().empty()) member.admin.push_back(url);
  }
  return member;
}

const Member* find_member(const std::vector<Member>& members, const std::string& node) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.node == node; });
  return found == members.end() ? nullptr : &*found;
}

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout,
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

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout) {
  return read_members(store, layout, client::locks_if_known(client::read_locks(store, layout)));
}

std::string doubt_of(const Member& member) {
  constexpr auto kSilent =
      std::chrono::seconds{25};  // one entry may be late or lost, clocks differ
  const auto seen = parse_rfc3339(member.seen);
  const WallTime now = wall_now();
  const std::string last = seen ? "last seen " + relative_time(*seen, now) : std::string{};
  if (!member.silence.empty()) return member.silence + (seen ? "; " + last : last);
  return seen && now - *seen > kSilent ? "was " + last : std::string{};
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
  for (const client::Lock& lock : locks) {
    if (lock.known && lock.session.empty()) free.push_back(lock.partition.number);
  }
  return free;
}

std::map<std::string, Partitions> partitions_by_leader(const client::Locks& locks) {
  std::map<std::string, Partitions> held;
  for (const client::Lock& lock : locks) {
    if (!lock.session.empty()) held[lock.name()].push_back(lock.partition.number);
  }
  return held;
}

Partitions misplaced(const client::Locks& locks, const std::vector<Member>& members,
                     const std::string& queue) {
  core::BalancerView view;
  for (const Member& member : members) {
    view.members.push_back({member.node, wire::number_of(member.weights, queue), member.draining});
  }
  for (const client::Lock& lock : locks) view.owners.push_back(lock.name());
  const std::vector<std::string> targets = core::targets(view);
  Partitions found;
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    const std::string& owner = view.owners[i];
    if (!owner.empty() && !targets[i].empty() && owner != targets[i]) found.push_back(i);
  }
  return found;
}

namespace {

ordered_json member_json(const Member& member) {
  const ordered_json pid = ordered_json::parse(member.pid, nullptr, false);
  return {{"node", member.node},
          {"host", text_or_null(member.host)},
          {"pid", pid.is_number() ? pid : text_or_null(member.pid)},
          {"version", text_or_null(member.version)},
          {"admin", member.admin},
          {"since", text_or_null(member.since)},
          {"seen", text_or_null(member.seen)},
          {"answers", member.answers ? ordered_json(*member.answers) : ordered_json{}},
          {"leads", member.leads},
          {"partitions", member.partitions},
          {"draining", member.draining}};
}

// "0-3,7 (5)"
std::string held_text(const Member& member) {
  if (member.partitions.empty()) return "none";
  return fmt::format("{} ({})", ranges(member.partitions), member.partitions.size());
}

// `undivided`: the queue has one partition.
Table table_of(const std::vector<Member>& members, bool undivided) {
  const auto time_text = [now = wall_now()](const std::string& text) {
    const auto time = parse_rfc3339(text);
    return time ? relative_time(*time, now) : text;
  };
  Table table{{"NODE", "HOST", "PID", "VERSION", "ADMIN", "SINCE", "SEEN", "ANSWERS", "STATE",
               undivided ? "LEADS" : "PARTITIONS"}};
  for (const Member& member : members) {
    const bool silent = !member.silence.empty();
    const bool drains = member.draining && !undivided;
    table.add_row({{member.node},
                   {member.host},
                   {member.pid},
                   {member.version},
                   {member.admin.empty() ? "off" : fmt::format("{}", fmt::join(member.admin, " "))},
                   {time_text(member.since)},
                   {time_text(member.seen)},
                   {silent           ? "no"
                    : member.answers ? "yes"
                                     : "",
                    silent ? Style::kRed : Style::kPlain},
                   {drains ? "draining" : "", Style::kYellow},
                   {!undivided     ? held_text(member)
                    : member.leads ? "leads"
                                   : "",
                    member.leads ? Style::kGreen : Style::kPlain}});
  }
  return table;
}

// Which partitions are free, or about to move.
void note_moves(const Client& client, const client::Locks& locks,
                const std::vector<Member>& members) {
  if (locks.count() == 1) return;
  const Partitions free = free_partitions(locks);
  if (!free.empty()) {
    client.console.note(fmt::format("nobody leads {}; \"lictor leader\" says who takes {}",
                                    partitions_text(free), free.size() == 1 ? "it" : "them"));
  }
  const Partitions moving = misplaced(locks, members, client.queue);
  if (moving.empty()) return;
  client.console.note(fmt::format("{} {} about to move to {}, one at a time, within 5 minutes",
                                  partitions_text(moving), moving.size() == 1 ? "is" : "are",
                                  moving.size() == 1 ? "another member" : "other members"));
}

void note_no_members(const Client& client, const client::Locks& locks) {
  const auto leaders = partitions_by_leader(locks);
  client.console.note(fmt::format(
      "no members in queue \"{}\" ({}){}", client.queue, client.layout.members_prefix,
      leaders.empty() ? R"(; start one with "lictor run")"
                      : ", though " + leaders.begin()->first +
                            " leads: a daemon's entry may come seconds after it "
                            "starts to lead; if it does not, the daemon's log says why"));
}

}  // namespace

Result<int> members(const Client& client) {
  auto read = client::read_locks(client.store, client.layout);
  if (!read && client::is_temporary(read.error())) return tl::unexpected(std::move(read.error()));
  if (!read && read.error().code == ErrorCode::kInvalid) {
    client.console.complain(read.error().message);
  }
  const bool known = read.has_value();
  const client::Locks locks = client::locks_if_known(std::move(read));
  LICTOR_TRY(auto members, read_members(client.store, client.layout, locks));
  ask_all(members);
  if (client.json) {
    print_json(client, {{"partitions", known ? ordered_json(locks.count()) : ordered_json{}},
                        {"free", free_partitions(locks)},
                        {"members", json_list(members, member_json)}});
    return kDone;
  }
  if (members.empty()) {
    note_no_members(client, locks);
    return kDone;
  }
  client.console.print(table_of(members, locks.count() == 1).render(client.console.width()));
  note_moves(client, locks, members);
  return kDone;
}

}  // namespace lictor::cli
