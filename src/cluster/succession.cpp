#include "cluster/succession.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"

namespace lictor::cluster {
namespace {

using namespace std::chrono_literals;

// The names of the members that may lead. std::nullopt if they are not known.
using Candidates = std::optional<std::vector<std::string>>;

// The members that are not in doubt. `single`: the queue has one partition, which a draining member
// leads all the same.
std::vector<std::string> candidates_of(const std::vector<Member>& members, bool single) {
  std::vector<std::string> names;
  for (const Member& member : members) {
    if (unresponsive_reason(member).empty() && (single || !member.draining)) {
      names.push_back(member.node);
    }
  }
  return names;
}

// std::nullopt if the token may not list the members. Blocks for kGlance and a request.
Candidates read_candidates(const client::Queue& queue, bool single) {
  auto members = read_members(queue.store, queue.layout, client::Locks::unknown());
  if (!members) return std::nullopt;
  // The session of a daemon that died may outlive its lock by the TTL.
  ask_all(*members);
  return candidates_of(*members, single);
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

constexpr const char* kNoneUp = R"(no daemon is up ("lictor run" starts one))";
constexpr const char* kNoOtherUp = R"(no other daemon is up ("lictor run" starts one))";
constexpr const char* kNoneTakes =
    R"(no daemon that takes partitions is up: start one ("lictor run"), or let a draining one take )"
    R"(partitions again ("lictor undrain HOST"))";

// "host-b or host-c takes it". `what`: "it", "each", "over". `none`: the text where there is no
// candidate.
std::string takers_text(const Candidates& candidates, const char* what, const char* none) {
  if (!candidates) return fmt::format("a running daemon takes {}", what);
  if (candidates->empty()) return fmt::format("{}; the next one takes {}", none, what);
  return fmt::format("{} takes {}", one_of(*candidates), what);
}

// The delay of a lock that was not released. If its key was deleted, daemons wait for the holders
// that they remember; with partitions, they wait before they write the number, too.
std::string delay_text(const LockView& lock, const Candidates& candidates) {
  if (lock.index == 0) {
    if (candidates && candidates->empty()) return {};  // perhaps nobody ever led
    return lock.partition.count == 1 ? " within the lock-delay" : " within two lock-delays";
  }
  const std::string delay = lock.text("lock_delay");
  if (delay.empty() || !lock.text("released").empty()) return {};
  return " when the lock-delay has passed, within " + delay;
}

// Says what happens and when, by its session, if the leader is dead, and who may lead next.
std::string takeover_if_dead(client::Store& store, const LockView& lock, const Candidates& others) {
  // Consul ends a session one to two TTLs after its last renewal, up to a third of one ago.
  std::string gone = "after session_ttl and lock_delay";
  const auto session = store.session(lock.session);
  const auto ttl = session ? parse_duration(session->ttl) : std::nullopt;
  if (ttl) gone = "within " + rounded_duration(2 * *ttl + session->lock_delay);
  return "it may be dead, frozen or cut off; " + takers_text(others, "over", kNoOtherUp) +
         " within 1s of the end of its jobs if only the daemon died, hang_timeout later than that "
         "if it hangs, " +
         gone + " if its host or its warden is gone too";
}

// Says who may lead the `free` partitions next, and when; for a single one also who led last.
std::string takeover_if_free(const client::Locks& locks, const Partitions& free,
                             const Candidates& candidates) {
  if (free.size() > 1) {
    // All daemons should have the same delay; a deleted lock's only counts if all are deleted.
    const auto stored = std::find_if(free.begin(), free.end(),
                                     [&](std::uint32_t i) { return locks[i].index != 0; });
    return takers_text(candidates, "each", kNoneTakes) +
           delay_text(locks[stored == free.end() ? free.front() : *stored], candidates);
  }
  const LockView& lock = locks[free.front()];
  std::string text = lock.text("node");
  if (!text.empty()) text = "last: " + text;
  if (const std::string released = lock.text("released"); !released.empty()) {
    text += (text.empty() ? "released at " : ", which released it at ") + released;
  }
  if (!text.empty()) text += "; ";
  return text + takers_text(candidates, "it", locks.count() == 1 ? kNoneUp : kNoneTakes) +
         delay_text(lock, candidates);
}

}  // namespace

Error nobody_leads(const client::Queue& queue, const client::Locks& locks, const Partitions& free) {
  const bool single = locks.count() == 1;
  const LockView& lock = locks[free.front()];
  const std::string key = queue.layout.lock_key(lock.partition);
  std::string text = fmt::format("nobody leads {}queue \"{}\" ({})",
                                 single ? "" : partitions_text(free) + " of ", queue.name,
                                 free.size() > 1   ? "below " + key.substr(0, key.rfind('/') + 1)
                                 : lock.index == 0 ? key + " does not exist"
                                                   : key + " is free");
  const Candidates candidates = read_candidates(queue, single);
  if (!single || lock.index != 0) {
    text += "; " + takeover_if_free(locks, free, candidates);
  } else if (!candidates || candidates->empty()) {
    text += ": no daemon has ever led it; if its name is right, start one with \"lictor run\"";
  } else {  // somebody deleted it, or it is about to be written
    text += "; " + takers_text(candidates, "it", kNoneUp) + delay_text(lock, candidates);
  }
  return {ErrorCode::kNotFound, std::move(text)};
}

std::optional<Error> nobody_leads(const client::Queue& queue, const client::Locks& locks) {
  const Partitions free = free_partitions(locks);
  if (free.empty()) return std::nullopt;
  return nobody_leads(queue, locks, free);
}

namespace {

// Why the holder of the lock may be dead. Empty if nothing says so.
std::string doubt_text(const client::Queue& queue, const LockView& lock, const Member& member) {
  const std::string doubt = unresponsive_reason(member);
  if (doubt.empty()) return {};
  const bool single = lock.partition.count == 1;
  Candidates others = read_candidates(queue, single);
  if (others) std::erase(*others, member.node);
  return fmt::format("{} leads{}, but {}; {}", lock.name(),
                     single ? "" : ' ' + partitions_text(member.partitions), doubt,
                     takeover_if_dead(queue.store, lock, others));
}

// The trouble of one lock. Empty if its holder answers.
std::string trouble_of(const client::Queue& queue, const client::Locks& locks,
                       std::uint32_t partition) {
  const LockView& lock = locks[partition];
  if (!lock.known) return {};
  if (lock.session.empty()) return nobody_leads(queue, locks, {partition}).message;
  Member member = read_member(queue.store, queue.layout, lock.text("node"), kGlance);
  member.partitions = {partition};
  return doubt_text(queue, lock, member);
}

}  // namespace

std::vector<std::string> doubtful_leaders(const client::Queue& queue, const client::Locks& locks,
                                          const std::vector<Member>& members) {
  std::vector<std::string> lines;
  for (const Member& member : members) {
    if (!member.leads) continue;
    std::string doubt = doubt_text(queue, locks[member.partitions.front()], member);
    if (!doubt.empty()) lines.push_back(std::move(doubt));
  }
  return lines;
}

std::string lead_trouble(const client::Queue& queue) {
  const auto locks = client::read_locks(queue.store, queue.layout);
  if (!locks) return locks.error().code == ErrorCode::kInvalid ? locks.error().message : "";
  if (locks->count() == 1) return trouble_of(queue, *locks, 0);
  std::vector<std::string> troubles;
  if (auto leaders = read_members(queue.store, queue.layout, *locks)) {
    std::erase_if(*leaders, [](const Member& member) { return !member.leads; });
    ask_all(*leaders);
    troubles = doubtful_leaders(queue, *locks, *leaders);
  }
  if (const auto free = nobody_leads(queue, *locks)) {
    troubles.insert(troubles.begin(), free->message);
  }
  return fmt::format("{}", fmt::join(troubles, "; "));
}

std::string lead_trouble(const client::Queue& queue, const TaskInfo& task) {
  const auto locks = client::read_locks(queue.store, queue.layout);
  if (!locks) return locks.error().code == ErrorCode::kInvalid ? locks.error().message : "";
  return trouble_of(queue, *locks, locks->partition_of(task));
}

// Reads the members first, then their answers: only these show which of them may lead next.
Result<Fleet> read_fleet(const client::Queue& queue, const client::Locks& locks,
                         std::chrono::milliseconds limit, const std::string& own) {
  Fleet fleet;
  LICTOR_TRY(fleet.members, read_members(queue.store, queue.layout, locks));
  fleet.locks = locks;
  ask_all(fleet.members, limit, own);
  const Candidates candidates = candidates_of(fleet.members, !fleet.partitioned());
  for (Member& member : fleet.members) {
    if (!member.leads || unresponsive_reason(member).empty()) continue;
    member.next = takeover_if_dead(queue.store, locks[member.partitions.front()], candidates);
  }
  const Partitions free = free_partitions(locks);
  if (!free.empty()) fleet.next = takeover_if_free(locks, free, candidates);
  return fleet;
}

}  // namespace lictor::cluster
