#pragma once

// The tasks that are ours: claimed, or being claimed.
//
//   kClaiming --applied--> kHeld --due, a free slot, in order--> kRunning --exit--> kSettling -->
//   gone
//       |                    |                                                         |
//       +--void--> gone      +--------- withdrawn, given back --------> kSettling -----+
//
// An early one was claimed ahead of its time: it takes no slot, and is offered to none, until then.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  Instant held_since{};
  Instant started_at{};
  Instant timeout_at = Instant::max();  // once it is to stop: when it should have ended
  bool last_chance = false;             // its next lost owner makes it a dead letter: it runs alone
  bool look_again = false;              // the key changed while we were settling it
  std::optional<WallTime> early_until;  // claimed ahead, and not started: it is due then
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
  [[nodiscard]] std::size_t early() const { return early_count_; }
  [[nodiscard]] bool is_early(const Attempt& attempt) const;
  /// When the first of the early ones is due.
  [[nodiscard]] std::optional<WallTime> next_due() const;
  /// The early one that is due last.
  [[nodiscard]] Attempt* last_early() const;

  /// The claimed attempt that is next to start; an early one never is, nor, `in_order`, one whose
  /// turn depends on a claim that was made before it and is not settled yet.
  [[nodiscard]] Attempt* next_held(bool in_order);
  [[nodiscard]] const Attempt* first_held() const {
    return held_.empty() ? nullptr : *held_.begin();
  }
  /// A running attempt whose time is up.
  [[nodiscard]] Attempt* next_timed_out(Instant now);
  [[nodiscard]] Instant next_timeout() const;

  [[nodiscard]] std::size_t count(Attempt::State state) const {
    return counts_[static_cast<std::size_t>(state)];
  }
  /// Claimed, due, and not started yet.
  [[nodiscard]] std::size_t ready_size() const { return held_.size() + many_due_count_; }
  /// Of those, what came due together with many others.
  [[nodiscard]] std::size_t many_due() const { return many_due_count_; }
  [[nodiscard]] std::size_t size() const { return by_key_.size(); }
  [[nodiscard]] bool empty() const { return by_key_.empty(); }
  [[nodiscard]] bool has_last_chance() const { return last_chances_ != 0; }
  void mark_last_chance(Attempt& attempt);

  [[nodiscard]] const Attempt* find(std::string_view key) const;

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Attempt* attempt : by_key_) visit(*attempt);
  }
  template <class Visit>
  void for_each(Visit visit) {
    for (Attempt* attempt : by_key_) visit(*attempt);
  }

 private:
  struct ByOrder {
    bool operator()(const Attempt* a, const Attempt* b) const {
      return starts_before(*a->task, *b->task);
    }
  };
  using InOrder = std::set<Attempt*, ByOrder>;
  struct ByKey {
    using is_transparent = void;
    static std::string_view key(const Attempt* attempt) { return attempt->task->key; }
    static std::string_view key(std::string_view key) { return key; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return key(a) < key(b);
    }
  };
  struct Early {
    std::set<Attempt*> claiming;
    InOrder held;
  };

  void leave_orders(Attempt& attempt);

  [[nodiscard]] const Attempt* first_claiming();

  std::map<AttemptId, Attempt> by_id_;
  std::set<Attempt*, ByKey> by_key_;
  std::deque<AttemptId> claiming_;   // in order; some may be settled, or gone
  InOrder held_;                     // without the early ones
  std::map<WallTime, Early> early_;  // by when they are due
  std::size_t early_count_ = 0;
  // Of many that are due at once each would take its time to be put among the others, and the first
  // would wait for it: they stay together, and are ready like those in held_.
  std::map<WallTime, InOrder> many_due_;
  std::size_t many_due_count_ = 0;
  std::set<std::pair<Instant, AttemptId>> timeouts_;
  std::size_t counts_[4] = {};
  std::size_t last_chances_ = 0;
};

}  // namespace lictor::core
