#include "cli/members.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/partitions.h"
#include "cli/process.h"
#include "client/drain.h"
#include "client/retry.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

bool is_loopback_url(std::string_view url) {
  return url.starts_with("http://127.") || url.starts_with("http://[::1]") ||
         url.starts_with("http://localhost:");
}

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

// Those of a listing of the members' prefix. "<node>/drain" says that the node is to be emptied.
std::vector<Member> members_in(const wire::Layout& layout,
                               const std::vector<wire::KvEntry>& entries,
                               const client::Locks& locks) {
  const auto held = partitions_by_leader(locks);
  std::set<std::string_view> keys;
  for (const wire::KvEntry& entry : entries) keys.insert(entry.key);
  std::vector<Member> members;
  for (const wire::KvEntry& entry : entries) {
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

}  // namespace

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const auto listed, store.list(layout.members_prefix));
  const client::Locks locks = client::locks_if_known(client::read_locks(store, layout));
  return members_in(layout, listed.entries, locks);
}

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout,
                                         const client::Locks& locks) {
  LICTOR_TRY(const auto listed, store.list(layout.members_prefix));
  return members_in(layout, listed.entries, locks);
}

std::optional<Member> read_member(Store& store, const wire::Layout& layout,
                                  const std::string& node) {
  if (node.empty()) return std::nullopt;
  const auto entry = store.get(layout.members_prefix + node);
  if (!entry || !*entry) return std::nullopt;
  return member_of(node, (*entry)->value);
}

std::string Lock::text(const char* field) const { return text_of(value, field); }

std::string Lock::name() const {
  if (session.empty()) return {};
  const std::string node = text("node");
  return node.empty() ? "session " + session : node;
}

Lock lock_of(const std::optional<wire::KvEntry>& entry, core::Partition partition) {
  Lock lock{{}, json::object(), 0, partition};
  if (!entry) return lock;
  lock.session = entry->session;
  lock.index = entry->modify_index;
  auto value = wire::parse_json(entry->value);
  if (value && value->is_object()) lock.value = std::move(*value);
  return lock;
}

Lock lock_of(const client::Locks& locks, std::uint32_t partition) {
  return lock_of(locks.entry(partition), {locks.count(), partition});
}

Result<Lock> read_lock(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const auto entry, store.get(layout.leader_key));
  return lock_of(entry);
}

Reach reach_of(const Member& member, std::string_view own_host) {
  Reach reach;
  for (const std::string& url : member.admin) {
    if (member.host == own_host || (!is_loopback_url(url) && !url.starts_with("unix:"))) {
      reach.addresses.push_back(url);
    }
  }
  if (reach.addresses.empty()) {
    reach.why_not = member.admin.empty()
                        ? "its admin face is switched off; set admin.listen there"
                        : "its admin face listens on its own host's loopback only; set "
                          "admin.listen there to an address that this host can reach, or run this "
                          "on that host";
  }
  return reach;
}

Pulse pulse_of(const Member& member, std::chrono::milliseconds limit) {
  const Reach reach = reach_of(member, host_name());
  if (reach.addresses.empty()) return {};
  auto face = AdminClient::open(reach.addresses, limit);
  if (!face) return {};
  const auto healthy = face->get("/healthz");
  const std::string where = fmt::format("{}", fmt::join(reach.addresses, ", "));
  if (!healthy && healthy.error().code == ErrorCode::kUnavailable) {
    return {false, "its daemon does not answer: no connection to " + where};
  }
  if (!healthy && healthy.error().code == ErrorCode::kTimeout) {
    return {false, fmt::format("its daemon does not answer: {} takes connections, but does not "
                               "answer within {}",
                               where, format_duration(limit))};
  }
  return {true, {}};
}

std::vector<Pulse> pulses_of(const std::vector<Member>& members) {
  std::vector<Pulse> pulses(members.size());
  ask_each(members.size(), [&](std::size_t i) { pulses[i] = pulse_of(members[i], kGlance); });
  return pulses;
}

std::string doubt_of(const Member& member, const Pulse& pulse) {
  const auto seen = parse_rfc3339(member.seen);
  const WallTime now = wall_now();
  const std::string last = seen ? "last seen " + relative_time(*seen, now) : std::string{};
  if (!pulse.silence.empty()) return pulse.silence + (seen ? "; " + last : last);
  return seen && now - *seen > std::chrono::floor<std::chrono::milliseconds>(kSilent)
             ? "was " + last
             : std::string{};
}

namespace {

ordered_json json_of(const Member& member, const Pulse& pulse) {
  const ordered_json pid = ordered_json::parse(member.pid, nullptr, false);
  return {{"node", member.node},
          {"host", text_or_null(member.host)},
          {"pid", pid.is_number() ? pid : text_or_null(member.pid)},
          {"version", text_or_null(member.version)},
          {"admin", member.admin},
          {"since", text_or_null(member.since)},
          {"seen", text_or_null(member.seen)},
          {"answers", pulse.answers ? ordered_json(*pulse.answers) : ordered_json{}},
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
Table table_of(const std::vector<Member>& members, const std::vector<Pulse>& pulses,
               bool undivided) {
  const auto time_text = [now = wall_now()](const std::string& text) {
    const auto time = parse_rfc3339(text);
    return time ? relative_time(*time, now) : text;
  };
  Table table{{"NODE", "HOST", "PID", "VERSION", "ADMIN", "SINCE", "SEEN", "ANSWERS", "STATE",
               undivided ? "LEADS" : "PARTITIONS"}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const bool silent = !pulses[i].silence.empty();
    const bool drains = member.draining && !undivided;
    table.add_row({{member.node},
                   {member.host},
                   {member.pid},
                   {member.version},
                   {member.admin.empty() ? "off" : fmt::format("{}", fmt::join(member.admin, " "))},
                   {time_text(member.since)},
                   {time_text(member.seen)},
                   {silent              ? "no"
                    : pulses[i].answers ? "yes"
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
  LICTOR_TRY(const auto members, read_members(client.store, client.layout, locks));
  const std::vector<Pulse> pulses = pulses_of(members);
  if (client.json) {
    ordered_json all = ordered_json::array();
    for (std::size_t i = 0; i < members.size(); ++i) all.push_back(json_of(members[i], pulses[i]));
    client.console.print(
        json_document({{"queue", client.queue},
                       {"partitions", known ? ordered_json(locks.count()) : ordered_json{}},
                       {"free", free_partitions(locks)},
                       {"members", std::move(all)}}));
    return kDone;
  }
  if (members.empty()) {
    note_no_members(client, locks);
    return kDone;
  }
  client.console.print(
      table_of(members, pulses, locks.count() == 1).render(client.console.width()));
  note_moves(client, locks, members);
  return kDone;
}

}  // namespace lictor::cli
