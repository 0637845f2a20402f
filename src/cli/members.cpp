#include "cli/members.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/text.h"
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

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kAskedAtOnce = 16;  // a few threads each

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
                               const std::vector<wire::KvEntry>& entries) {
  std::set<std::string_view> keys;
  for (const wire::KvEntry& entry : entries) keys.insert(entry.key);
  std::vector<Member> members;
  for (const wire::KvEntry& entry : entries) {
    std::string name = entry.key.substr(layout.members_prefix.size());
    // A daemon's entry is held by a session; somebody wrote this one by hand.
    if (name.find('/') != std::string::npos || entry.session.empty()) continue;
    members.push_back(member_of(name, entry.value));
    members.back().draining = keys.contains(client::drain_key(layout, name));
  }
  return members;
}

std::vector<Member> with_leads(std::vector<Member> members, const client::Locks& locks) {
  const auto held = partitions_by_leader(locks);
  for (Member& member : members) {
    const auto own = held.find(member.node);
    if (own != held.end()) member.partitions = own->second;
    member.leads = !member.partitions.empty();
  }
  return members;
}

}  // namespace

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const auto listed, store.list(layout.members_prefix));
  const client::Locks locks = client::locks_if_known(client::read_locks(store, layout));
  return with_leads(members_in(layout, listed.entries), locks);
}

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout,
                                         const client::Locks& locks) {
  LICTOR_TRY(const auto listed, store.list(layout.members_prefix));
  return with_leads(members_in(layout, listed.entries), locks);
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
  std::atomic<std::size_t> next = 0;
  const auto ask = [&] {
    for (std::size_t i = next++; i < members.size(); i = next++) {
      pulses[i] = pulse_of(members[i], kGlance);
    }
  };
  std::vector<std::jthread> askers;
  while (askers.size() < std::min(members.size(), kAskedAtOnce)) askers.emplace_back(ask);
  askers.clear();  // waits for them
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

// Not known where the token may not list the members. `undivided`: then a member that is to be emptied
// leads all the same. Blocks for kGlance and a request.
Candidates read_candidates(Store& store, const wire::Layout& layout, bool undivided = true) {
  const auto listed = store.list(layout.members_prefix);
  if (!listed) return std::nullopt;
  const std::vector<Member> members = members_in(layout, listed->entries);
  // The session of a daemon that died with its lead may outlive the lock by its TTL.
  const std::vector<Pulse> pulses = pulses_of(members);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (doubt_of(members[i], pulses[i]).empty() && (undivided || !members[i].draining)) {
      names.push_back(members[i].node);
    }
  }
  return names;
}

// "host-b", "host-b or host-c", "host-b, host-c or host-d"
std::string one_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  if (names.size() > kMostNamed) {
    const std::vector<std::string> first(names.begin(), names.begin() + kMostNamed - 1);
    return fmt::format("{} or one of {} more", fmt::join(first, ", "), names.size() - first.size());
  }
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return first.empty() ? names.back()
                       : fmt::format("{} or {}", fmt::join(first, ", "), names.back());
}

}  // namespace

std::string if_dead(Store& store, const wire::Layout& layout, const Lock& lock,
                    const Member& member) {
  Candidates others = read_candidates(store, layout, lock.partition.count == 1);
  if (others) std::erase(*others, member.node);
  return if_dead(store, lock, member, others);
}

std::string if_dead(Store& store, const Lock& lock, const Member& member,
                    const Candidates& others) {
  std::string gone = "after session_ttl and lock_delay";
  const auto session = store.session(lock.session);
  const Duration ttl =
      session ? parse_duration(session->ttl).value_or(Duration::zero()) : Duration::zero();
  const auto seen = parse_rfc3339(member.seen);
  if (ttl > Duration::zero() && seen) {
    // Consul ends a session one to two TTLs after its last renewal, which was at `seen` or up to a
    // third of the TTL later, but not later than now.
    const Duration since = std::clamp<std::chrono::milliseconds>(wall_now() - *seen, 0ms, 24h);
    const auto left = [&](Duration end) {
      return rounded_duration(std::max<Duration>(end - since, 0s) + session->lock_delay);
    };
    gone = fmt::format("in {} to {}", left(ttl), left(std::min(ttl * 7 / 3, since + 2 * ttl)));
  }
  const std::string next =
      !others ? "another daemon takes over"
      : others->empty()
          ? R"(no other daemon is up ("lictor run" starts one); the next one takes over)"
          : one_of(*others) + " takes over";
  return "it may be dead, frozen or cut off; " + next +
         " within 1s if the daemon died, within hang_timeout + 1s if it hangs, " + gone +
         " if its host is gone";
}

std::string if_free(const Lock& lock, const Candidates& candidates) {
  std::string text;
  if (const std::string last = lock.text("node"); !last.empty()) text = "last: " + last;
  const std::string released = lock.text("released");
  const std::string delay = lock.text("lock_delay");
  const std::string next =
      !candidates           ? "a running daemon takes it"
      : candidates->empty() ? R"(no daemon is up ("lictor run" starts one); the next one takes it)"
                            : one_of(*candidates) + " takes it";
  if (!released.empty()) {
    return text + (text.empty() ? "released at " : ", which released it at ") + released + "; " +
           next;
  }
  return text + (text.empty() ? "" : "; ") + "it was not released: " + next +
         " when the lock-delay has passed" + (delay.empty() ? "" : ", within " + delay);
}

namespace {

// Who takes free partitions, `each` or "it", and when. `delay`: how long the lock-delay may last
// still; empty: at once.
std::string takers_text(const Candidates& candidates, const std::string& each,
                        const std::string& delay) {
  std::string text = !candidates ? "a running daemon takes " + each
                     : candidates->empty()
                         ? "no daemon is up that takes partitions (\"lictor run\" starts one, "
                           "\"lictor undrain HOST\" lets one take them again)"
                         : one_of(*candidates) + " takes " + each;
  if (!delay.empty()) text += " when the lock-delay has passed, within " + delay;
  return text;
}

// The lock-delay of a lock that was not released; empty: it was, or was never held.
std::string delay_of(const Lock& lock) {
  return lock.text("released").empty() ? lock.text("lock_delay") : std::string{};
}

}  // namespace

Error nobody_leads(const Client& client, const Lock& lock) {
  const bool undivided = lock.partition.count == 1;
  std::string text =
      fmt::format("nobody leads {}queue \"{}\" ({}",
                  undivided ? "" : fmt::format("partition {} of ", lock.partition.number),
                  client.queue, client.layout.lock_key(lock.partition));
  text += lock.index == 0 ? " does not exist)" : " is free)";
  if (undivided && lock.index == 0) {
    text += ": no daemon has ever led it; if its name is right, start one with \"lictor run\"";
    return {ErrorCode::kNotFound, std::move(text)};
  }
  const Candidates candidates = read_candidates(client.store, client.layout, undivided);
  const bool plain = lock.index == 0 || (!undivided && candidates && candidates->empty());
  text +=
      "; " + (plain ? takers_text(candidates, "it", delay_of(lock)) : if_free(lock, candidates));
  return {ErrorCode::kNotFound, std::move(text)};
}

std::optional<Error> nobody_leads(const Client& client, const client::Locks& locks) {
  const Partitions free = free_partitions(locks);
  if (free.empty()) return std::nullopt;
  if (free.size() == 1) return nobody_leads(client, lock_of(locks, free.front()));
  std::string delay;
  for (const std::uint32_t i : free) {
    const std::string own = delay_of(lock_of(locks, i));
    const auto time = parse_duration(own);
    if (time && *time > parse_duration(delay).value_or(Duration::zero())) delay = own;
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("nobody leads {} of queue \"{}\" (below {}/{}/); {}", partitions_text(free),
                  client.queue, client.layout.leader_key, locks.count(),
                  takers_text(read_candidates(client.store, client.layout, false), "each", delay))};
}

namespace {

std::string doubt_text(const Client& client, const Lock& lock, const Member& member,
                       const std::string& doubt) {
  const std::string what =
      lock.partition.count == 1 ? std::string{} : ' ' + partitions_text(member.partitions);
  return fmt::format("{} leads{}, but {}; {}", lock.name(), what, doubt,
                     if_dead(client.store, client.layout, lock, member));
}

// Of one lock. Empty: its holder answers.
std::string trouble_of(const Client& client, const Lock& lock) {
  if (lock.session.empty()) return nobody_leads(client, lock).message;
  auto member = read_member(client.store, client.layout, lock.text("node"));
  const std::string doubt = member ? doubt_of(*member, pulse_of(*member, kGlance)) : "";
  if (doubt.empty()) return {};
  member->partitions = {lock.partition.number};
  return doubt_text(client, lock, *member, doubt);
}

}  // namespace

std::vector<std::string> doubtful_leaders(const Client& client, const client::Locks& locks,
                                          const std::vector<Member>& members,
                                          const std::vector<Pulse>& pulses) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    if (!member.leads) continue;
    const std::string doubt = doubt_of(member, pulses[i]);
    if (doubt.empty()) continue;
    lines.push_back(doubt_text(client, lock_of(locks, member.partitions.front()), member, doubt));
  }
  return lines;
}

std::string lead_trouble(const Client& client) {
  const auto locks = client::read_locks(client.store, client.layout);
  if (!locks) return locks.error().code == ErrorCode::kInvalid ? locks.error().message : "";
  if (locks->count() == 1) return trouble_of(client, lock_of(*locks, 0));
  std::vector<std::string> troubles;
  if (const auto free = nobody_leads(client, *locks)) troubles.push_back(free->message);
  if (const auto members = read_members(client.store, client.layout, *locks)) {
    for (std::string& line : doubtful_leaders(client, *locks, *members, pulses_of(*members))) {
      troubles.push_back(std::move(line));
    }
  }
  return fmt::format("{}", fmt::join(troubles, "; "));
}

std::string lead_trouble(const Client& client, const TaskInfo& task) {
  const auto locks = client::read_locks(client.store, client.layout);
  if (!locks) return locks.error().code == ErrorCode::kInvalid ? locks.error().message : "";
  if (!locks->leader_of(task).known) return {};
  return trouble_of(client, lock_of(*locks, locks->partition_of(task)));
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
  client.console.note(fmt::format("{} {} about to move to {}, one at a time",
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
