#pragma once

// Chooses which blocking queries are under way if there are more of them than connections.
//
// While all fit, each waits for as long as its caller wants. Otherwise they take turns. A query
// that work waits for (new tasks, a lock that may become free) is asked every kPromptRound, the
// others every kRound. Each time Consul holds the query for a slice of the round: as long a slice
// as the places allow, so that most changes are seen at once and the others at the next turn. The
// prompt ones come first: the others get the remaining places, but never less than half of the
// places if they need it. New queries of each kind go before older ones: their answer may be there
// already.
//
// One query for several queues would not help: a prefix that holds them all also holds all of their
// tasks, every write of any queue would wake it, and Consul would walk through all keys each time
// (consul.md 11); and queues may lie anywhere.
//
// A queue led from here asks one prompt query and three others: one request a second.

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/http.h"
#include "base/id.h"
#include "lictor/time.h"

namespace lictor::net {

/// Passive; not thread safe.
class PollTurns {
 public:
  static constexpr std::chrono::milliseconds kPromptRound{2'000};
  static constexpr std::chrono::milliseconds kRound{6'000};
  /// If there are so many queries that even this is too long, a turn comes later than its round.
  static constexpr std::chrono::milliseconds kLeastSlice{50};

  /// `expected`: the most queries that there may be. If they do not all fit, none waits for longer
  /// than its round from the start, so that no later query has to wait for long.
  PollTurns(std::size_t places, std::size_t expected) : places_(places), expected_(expected) {}

  /// Adds a query. It is due at once, before queries that have had a turn.
  void add(Instant now, RequestId query, const http::Watch& watch);
  /// Removes a query; without effect if it is not there.
  void remove(RequestId query);

  /// How long Consul is to hold the query from now on.
  struct Turn {
    RequestId query;
    std::chrono::milliseconds wait;
  };
  /// The next query to ask, now under way; std::nullopt if none is due, or no place is free.
  [[nodiscard]] std::optional<Turn> next(Instant now);
  /// Ends a turn of the query; another follows. `cost`: of the answer; a tenth of the time at most.
  void ended(Instant now, RequestId query, Duration cost);

  /// When next() has a query, if no place becomes free before.
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Query {
    bool prompt = false;
    bool is_new = true;
    bool running = false;
    Instant until{};    // when the caller wants an answer
    Instant started{};  // when its turn began
    Instant due{};      // when not running
  };
  using Queries = std::map<RequestId, Query>;
  struct Kind {
    std::size_t count = 0;
    std::size_t running = 0;
    std::set<std::tuple<bool, Instant, RequestId>> waiting{};  // by place_of()
  };

  [[nodiscard]] bool all_fit() const { return std::max(expected_, queries_.size()) <= places_; }
  [[nodiscard]] std::size_t for_prompt() const;
  [[nodiscard]] bool has_place(bool prompt) const;
  [[nodiscard]] static std::chrono::milliseconds round_of(bool prompt) {
    return prompt ? kPromptRound : kRound;
  }
  [[nodiscard]] std::chrono::milliseconds slice(bool prompt) const;
  void wait(Queries::iterator at, Instant due);
  [[nodiscard]] Kind& kind(bool prompt) { return prompt ? prompt_ : others_; }
  [[nodiscard]] static auto place_of(Queries::const_iterator at) {
    return std::tuple{!at->second.is_new, at->second.due, at->first};
  }

  const std::size_t places_;
  const std::size_t expected_;
  Queries queries_;
  Kind prompt_, others_;
};

}  // namespace lictor::net
