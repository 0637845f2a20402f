#pragma once

// How a daemon shares out its connections to one agent. Consul resets or refuses connections beyond
// limits.http_max_conns_per_client, 200 by default, from one address: a daemon that took them all
// would shut out every other program of its host, the consul command included. So the number of
// queues does not matter: blocking queries take turns if they exceed their connections.

#include <algorithm>
#include <cstddef>

namespace lictor::net {

inline constexpr std::size_t kMostConnections = 32;  // the contract's

// Blocking queries. Each of up to four queues has its own four for good.
inline constexpr std::size_t kPollConnections = 16;
// For other requests. Each takes about a millisecond.
inline constexpr std::size_t kShortConnections = 6;
// For requests that leadership depends on: they must not wait for slow answers to the others.
inline constexpr std::size_t kUrgentConnections = 2;
// For transactions of all queues. Consul applies them one after the other; raw transactions on 4
// connections are as fast as on more.
inline constexpr std::size_t kCommitConnections = 6;
// For the admin API: people, and programs that poll.
inline constexpr std::size_t kAdminConnections = 2;

static_assert(kPollConnections + kShortConnections + kUrgentConnections + kCommitConnections +
                  kAdminConnections <=
              kMostConnections);

/// The blocking queries of a queue that is led from here: tasks, leader key, control, schedules.
inline constexpr std::size_t kPollsPerQueue = 4;

/// The most connections to one agent that a daemon with so many queues takes.
[[nodiscard]] constexpr std::size_t connections_of(std::size_t queues, bool has_admin) {
  return std::min(queues * kPollsPerQueue, kPollConnections) + kShortConnections +
         kUrgentConnections + kCommitConnections + (has_admin ? kAdminConnections : 0);
}

}  // namespace lictor::net
