#pragma once

// The tasks that are ours: claimed, or being claimed.
//
//   kClaiming --applied--> kHeld --due, a free slot, in order--> kRunning --exit--> kSettling -->
//   gone
//       |                    |                                                         |
//       +--void--> gone      +--------- withdrawn, given back --------> kSettling -----+
//
// An early one was claimed ahead of its time: it takes no slot, and is offered to none, until then.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/id.h"
#include "core/task.h"

namespace lictor::core {

struct Attempt {
  enum class State { kClaiming, kHeld, kRunning, kSettling };
  enum class StopReason { kNone, kWithdrawn, kTimeout, kDrain, kLease };

  AttemptId id;
  State state = State::kClaiming;
  StopReason stop = StopReason::kNone;
  std::shared_ptr<const Task> task;  // with our stamp and its ModifyIndex, once claimed
  TypePolicy policy;                 // as it was when the task was claimed
  std::uint64_t token = 0;           // ModifyIndex of the claim
  Instant claimed_at{};
  Instant started_at{};
  Instant timeout_at = Instant::max();
  bool last_chance = false;             // its next lost owner makes it a dead letter: it runs alone
  bool look_again = false;              // the key changed while we were settling it
  std::optional<WallTime> early_until;  // claimed ahead: it is due then
};

class Attempts {
 public:
  Attempt& add(AttemptId id, std::shared_ptr<const Task> task);
  void remove(const Attempt& attempt);
  void clear();

  [[nodiscard]] Attempt* find(std::string_view key);
  [[nodiscard]] Attempt* find(AttemptId id);

  void set_state(Attempt& attempt, Attempt::State state);
  void set_timeout(Attempt& attempt, Instant at);

  /// Claimed ahead of its time, which is `due`.
  void set_early(Attempt& attempt, WallTime due);
  /// What is due at `wall` is early no more.
  void advance(WallTime wall);
  [[nodiscard]] std::size_t early() const { return early_.size(); }
  /// When the first of the early ones is due.
  [[nodiscard]] std::optional<WallTime> next_due() const;
  /// The early one that is due last.
  [[nodiscard]] Attempt* last_early();

  /// The claimed attempt that is next to start; an early one never is, nor one whose turn depends
  /// on a claim that was made before it and is not settled yet.
  [[nodiscard]] Attempt* next_held();
  /// A running attempt whose time is up.
  [[nodiscard]] Attempt* next_timed_out(Instant now);
  [[nodiscard]] Instant next_timeout() const;

  [[nodiscard]] std::size_t count(Attempt::State state) const {
    return counts_[static_cast<std::size_t>(state)];
  }
  /// Claimed, due, and not started yet.
  [[nodiscard]] std::size_t ready_size() const { return held_.size(); }
  [[nodiscard]] std::size_t size() const { return by_key_.size(); }
  [[nodiscard]] bool empty() const { return by_key_.empty(); }
  [[nodiscard]] bool has_last_chance() const { return last_chances_ != 0; }
  void mark_last_chance(Attempt& attempt);

  [[nodiscard]] const Attempt* find(std::string_view key) const;

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [key, attempt] : by_key_) visit(std::as_const(*attempt));
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [key, attempt] : by_key_) visit(*attempt);
  }

 private:
  void leave_orders(Attempt& attempt);

  std::map<std::string, std::unique_ptr<Attempt>, std::less<>> by_key_;
  std::map<AttemptId, Attempt*> by_id_;
  std::set<AttemptId> claiming_;
  std::map<Order, Attempt*> held_;                            // without the early ones
  std::map<std::pair<WallTime, AttemptId>, Attempt*> early_;  // being claimed, or held
  std::set<std::pair<Instant, AttemptId>> timeouts_;
  std::size_t counts_[4] = {};
  std::size_t last_chances_ = 0;
};

}  // namespace lictor::core
