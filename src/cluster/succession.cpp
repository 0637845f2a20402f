#include "cluster/succession.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cluster/admin_client.h"

namespace lictor::cluster {
namespace {

using namespace std::chrono_literals;

// Not known where the token may not list the members. `undivided`: then a member that is to be
// emptied leads all the same. Blocks for kGlance and a request.
Candidates read_candidates(client::Store& store, const wire::Layout& layout,
                           bool undivided = true) {
  auto members = read_members(store, layout, client::Locks::unknown());
  if (!members) return std::nullopt;
  // The session of a daemon that died with its lead may outlive the lock by its TTL.
  ask_all(*members);
  std::vector<std::string> names;
  for (const Member& member : *members) {
    if (unresponsive_reason(member).empty() && (undivided || !member.draining))
      names.push_back(member.node);
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
std::string delay_of(const LockView& lock) {
  return lock.text("released").empty() ? lock.text("lock_delay") : std::string{};
}

}  // namespace

std::string takeover_if_dead(client::Store& store, const wire::Layout& layout, const LockView& lock,
                             const Member& member) {
  Candidates others = read_candidates(store, layout, lock.partition.count == 1);
  if (others) std::erase(*others, member.node);
  return takeover_if_dead(store, lock, member, others);
}

std::string takeover_if_dead(client::Store& store, const LockView& lock, const Member& member,
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
         " within 1s of the end of its jobs if only the daemon died, hang_timeout later than that "
         "if it hangs, " +
         gone + " if its host or its warden is gone too";
}

std::string takeover_if_free(const LockView& lock, const Candidates& candidates) {
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

Error nobody_leads(const client::Queue& queue, const LockView& lock) {
  const bool undivided = lock.partition.count == 1;
  std::string text =
      fmt::format("nobody leads {}queue \"{}\" ({}",
                  undivided ? "" : fmt::format("partition {} of ", lock.partition.number),
                  queue.name, queue.layout.lock_key(lock.partition));
  text += lock.index == 0 ? " does not exist)" : " is free)";
  if (undivided && lock.index == 0) {
    text += ": no daemon has ever led it; if its name is right, start one with \"lictor run\"";
    return {ErrorCode::kNotFound, std::move(text)};
  }
  const Candidates candidates = read_candidates(queue.store, queue.layout, undivided);
  const bool plain = lock.index == 0 || (!undivided && candidates && candidates->empty());
  text += "; " + (plain ? takers_text(candidates, "it", delay_of(lock))
                        : takeover_if_free(lock, candidates));
  return {ErrorCode::kNotFound, std::move(text)};
}

std::optional<Error> nobody_leads(const client::Queue& queue, const client::Locks& locks) {
  const Partitions free = free_partitions(locks);
  if (free.empty()) return std::nullopt;
  if (free.size() == 1) return nobody_leads(queue, locks[free.front()]);
  std::string delay;
  for (const std::uint32_t i : free) {
    const std::string own = delay_of(locks[i]);
    const auto time = parse_duration(own);
    if (time && *time > parse_duration(delay).value_or(Duration::zero())) delay = own;
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("nobody leads {} of queue \"{}\" (below {}/{}/); {}", partitions_text(free),
                  queue.name, queue.layout.leader_key, locks.count(),
                  takers_text(read_candidates(queue.store, queue.layout, false), "each", delay))};
}

namespace {

// Why the holder of the lock may be dead. Empty: no reason.
std::string doubt_text(const client::Queue& queue, const LockView& lock, const Member& member) {
  const std::string doubt = unresponsive_reason(member);
  if (doubt.empty()) return {};
  const std::string what =
      lock.partition.count == 1 ? std::string{} : ' ' + partitions_text(member.partitions);
  return fmt::format("{} leads{}, but {}; {}", lock.name(), what, doubt,
                     takeover_if_dead(queue.store, queue.layout, lock, member));
}

// Of one lock. Empty: its holder answers.
std::string trouble_of(const client::Queue& queue, const LockView& lock) {
  if (lock.session.empty()) return nobody_leads(queue, lock).message;
  Member member = read_member(queue.store, queue.layout, lock.text("node"), kGlance);
  member.partitions = {lock.partition.number};
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
  if (locks->count() == 1) return trouble_of(queue, (*locks)[0]);
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
  const LockView& lock = locks->of(task);
  return lock.known ? trouble_of(queue, lock) : "";
}

}  // namespace lictor::cluster
