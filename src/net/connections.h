#pragma once

// How a daemon's connections to one agent are shared out. Consul resets, or refuses, what goes
// beyond limits.http_max_conns_per_client, 200 by default, from one address: a daemon that took
// them all would shut out every other program of its host, the consul command included. So the
// number of queues does not matter: blocking queries take turns where they are more than their
// connections.

#include <algorithm>
#include <cstddef>

namespace lictor::net {

inline constexpr std::size_t kMostConnections = 32;  // the contract's

// Blocking queries. Each of up to four queues has its own four for good.
inline constexpr std::size_t kPollConnections = 16;
// Other requests. Each takes about a millisecond.
inline constexpr std::size_t kShortConnections = 6;
// Beside those, for what leadership rests on: it must not wait for slow answers to the others.
inline constexpr std::size_t kUrgentConnections = 2;
// Transactions of all queues. Consul applies them one after the other; raw transactions on 4
// connections are as fast as on more (bench, `scale`).
inline constexpr std::size_t kCommitConnections = 6;
// The admin API: for people, and for programs that look.
inline constexpr std::size_t kAdminConnections = 2;

static_assert(kPollConnections + kShortConnections + kUrgentConnections + kCommitConnections +
                  kAdminConnections <=
              kMostConnections);

/// The blocking queries of a queue that is led from here: tasks, leader key, control, schedules.
inline constexpr std::size_t kPollsPerQueue = 4;

/// At most so many connections to one agent does a daemon with so many queues take.
[[nodiscard]] constexpr std::size_t connections_of(std::size_t queues, bool has_admin) {
  return std::min(queues * kPollsPerQueue, kPollConnections) + kShortConnections +
         kUrgentConnections + kCommitConnections + (has_admin ? kAdminConnections : 0);
}

}  // namespace lictor::net
