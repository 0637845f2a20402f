#include "net/poll_turns.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

// The others get places for slices of this length before the prompt queries get places for good.
constexpr milliseconds kModestSlice{200};
// Of the places: so one is free soon when a query is due.
constexpr double kShare = 0.9;
// Consul may answer at once though nothing has changed: no loop.
constexpr milliseconds kEarly{500};
// An answer is paid for with so many times its cost before the query is asked again.
constexpr int kPrice = 10;

double ms(milliseconds time) { return static_cast<double>(time.count()); }

}  // namespace

void PollTurns::add(Instant now, RequestId query, const http::Watch& watch) {
  const auto [at, is_new] = queries_.try_emplace(query);
  LICTOR_ASSERT(is_new);
  at->second.prompt = watch.prompt;
  at->second.until = now + watch.wait;
  if (watch.prompt) ++prompt_;
  wait(at, now);
}

void PollTurns::wait(Queries::iterator at, Instant due) {
  at->second.due = due;
  waiting(at->second.prompt).insert(place_of(at));
}

void PollTurns::remove(RequestId query) {
  const auto at = queries_.find(query);
  if (at == queries_.end()) return;
  if (at->second.running) {
    --running(at->second.prompt);
  } else {
    waiting(at->second.prompt).erase(place_of(at));
  }
  if (at->second.prompt) --prompt_;
  queries_.erase(at);
}

// Places that are theirs alone.
std::size_t PollTurns::for_prompt() const {
  const double needed = std::ceil(static_cast<double>(others()) * ms(kModestSlice) / ms(kRound));
  const std::size_t kept = std::min(static_cast<std::size_t>(needed), places_ / 2);
  return std::min(prompt_, places_ - kept);
}

bool PollTurns::has_place(bool prompt) const {
  // The running queries of a kind may exceed its share, from before there were others.
  if (prompt_running_ + others_running_ >= places_) return false;
  return prompt ? prompt_running_ < for_prompt() : others_running_ < places_ - for_prompt();
}

// As long as the places allow, if each query is asked once a round.
milliseconds PollTurns::slice(bool prompt) const {
  const std::size_t places = prompt ? for_prompt() : places_ - for_prompt();
  const std::size_t count = prompt ? prompt_ : others();
  const double share = static_cast<double>(places) / static_cast<double>(count);
  const milliseconds longest = round_of(prompt);
  return std::clamp(milliseconds{std::llround(kShare * share * ms(longest))}, kLeastSlice, longest);
}

std::optional<PollTurns::Turn> PollTurns::next(Instant now) {
  for (const bool prompt : {true, false}) {
    Waiting& each = waiting(prompt);
    if (each.empty() || !has_place(prompt)) continue;
    const auto& [had_turn, due, query] = *each.begin();
    if (due > now) continue;
    const auto at = queries_.find(query);
    each.erase(each.begin());
    at->second.running = true;
    at->second.is_new = false;
    at->second.started = now;
    ++running(prompt);
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
  --running(at->second.prompt);
  const Duration after = all_fit() ? kEarly : round_of(at->second.prompt);
  wait(at, std::max({now, at->second.started + after, now + cost * kPrice}));
}

Instant PollTurns::next_deadline() const {
  Instant next = Instant::max();
  for (const bool prompt : {true, false}) {
    const Waiting& each = prompt ? waiting_prompt_ : waiting_others_;
    if (each.empty() || !has_place(prompt)) continue;
    next = std::min(next, std::get<Instant>(*each.begin()));
  }
  return next;
}

}  // namespace lictor::net
