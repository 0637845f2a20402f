#include "net/poll_turns.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

// Prompt queries get places of their own only if the others can still have slices of this length.
constexpr milliseconds kModestSlice{200};
// The used share of the places: so one is free soon when a query is due.
constexpr double kShare = 0.9;
// Consul may answer at once although nothing has changed: avoids a loop.
constexpr milliseconds kEarly{500};
// After an answer the query pauses for this many times its cost.
constexpr int kPrice = 10;

double ms(milliseconds time) { return static_cast<double>(time.count()); }

}  // namespace

void PollTurns::add(Instant now, RequestId query, const http::Watch& watch) {
  const auto [at, is_new] = queries_.try_emplace(query);
  LICTOR_ASSERT(is_new);
  at->second.prompt = watch.prompt;
  at->second.until = now + watch.wait;
  ++kind(watch.prompt).count;
  wait(at, now);
}

void PollTurns::wait(Queries::iterator at, Instant due) {
  at->second.due = due;
  kind(at->second.prompt).waiting.insert(place_of(at));
}

void PollTurns::remove(RequestId query) {
  const auto at = queries_.find(query);
  if (at == queries_.end()) return;
  Kind& own = kind(at->second.prompt);
  --own.count;
  if (at->second.running) {
    --own.running;
  } else {
    own.waiting.erase(place_of(at));
  }
  queries_.erase(at);
}

// The places reserved for prompt queries.
std::size_t PollTurns::for_prompt() const {
  const double needed =
      std::ceil(static_cast<double>(others_.count) * ms(kModestSlice) / ms(kRound));
  const std::size_t kept = std::min(static_cast<std::size_t>(needed), places_ / 2);
  return std::min(prompt_.count, places_ - kept);
}

bool PollTurns::has_place(bool prompt) const {
  // The running queries of a kind may exceed its share, from before there were others.
  if (prompt_.running + others_.running >= places_) return false;
  return prompt ? prompt_.running < for_prompt() : others_.running < places_ - for_prompt();
}

// The longest slice that the places allow if each query is asked once a round.
milliseconds PollTurns::slice(bool prompt) const {
  const std::size_t places = prompt ? for_prompt() : places_ - for_prompt();
  const std::size_t count = prompt ? prompt_.count : others_.count;
  const double share = static_cast<double>(places) / static_cast<double>(count);
  const milliseconds longest = round_of(prompt);
  return std::clamp(milliseconds{std::llround(kShare * share * ms(longest))}, kLeastSlice, longest);
}

std::optional<PollTurns::Turn> PollTurns::next(Instant now) {
  for (const bool prompt : {true, false}) {
    Kind& each = kind(prompt);
    if (each.waiting.empty() || !has_place(prompt)) continue;
    const auto& [had_turn, due, query] = *each.waiting.begin();
    if (due > now) continue;
    const auto at = queries_.find(query);
    each.waiting.erase(each.waiting.begin());
    at->second.running = true;
    at->second.is_new = false;
    at->second.started = now;
    ++each.running;
    const auto left =
        std::max(std::chrono::ceil<milliseconds>(at->second.until - now), kLeastSlice);
    return Turn{at->first, all_fit() ? left : std::min(left, slice(prompt))};
  }
  return std::nullopt;
}

void PollTurns::ended(Instant now, RequestId query, Duration cost) {
  const auto at = queries_.find(query);
  LICTOR_ASSERT(at != queries_.end() && at->second.running);
  at->second.running = false;
  --kind(at->second.prompt).running;
  const Duration after = all_fit() ? kEarly : round_of(at->second.prompt);
  wait(at, std::max({now, at->second.started + after, now + cost * kPrice}));
}

Instant PollTurns::next_deadline() const {
  Instant next = Instant::max();
  for (const bool prompt : {true, false}) {
    const Kind& each = prompt ? prompt_ : others_;
    if (each.waiting.empty() || !has_place(prompt)) continue;
    next = std::min(next, std::get<Instant>(*each.waiting.begin()));
  }
  return next;
}

}  // namespace lictor::net
