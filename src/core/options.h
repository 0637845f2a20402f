#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "lictor/time.h"
#include "schedule/ticks.h"

namespace lictor::core {

using namespace std::chrono_literals;

class CostModel;

/// The wait before the next attempt: initial * factor^(failures - 1), at most `max`, less a random
/// part of up to `jitter`, so that tasks that failed together do not return together.
struct Backoff {
  Duration initial = 1s;
  Duration max = 5min;
  double factor = 2.0;
  double jitter = 0.2;  // a fraction, 0 to 1

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

/// Consul's longest lock-delay, whatever its session asked for (60.2 s were measured with a
/// LockDelay of 120 s).
inline constexpr Duration kMostLockDelay = 60s;

enum class Delivery { kAtLeastOnce, kAtMostOnce };
enum class OnLeaseLost { kStop, kFinish };

/// A job or its receiver may ask for a longer pause than the backoff, up to this.
inline constexpr std::chrono::milliseconds kLongestRetryAfter = 24h;

/// At most one claim in `interval` on average, `burst` at once.
struct Rate {
  Duration interval{};
  std::uint32_t burst = 1;

  friend bool operator==(const Rate&, const Rate&) = default;
};

/// How much of the history is kept.
struct HistoryLimits {
  std::uint32_t keep = 1000;
  Duration max_age = 7 * 24h;  // zero: any age

  friend bool operator==(const HistoryLimits&, const HistoryLimits&) = default;
};

/// The configuration of one taskType. A record may override max_attempts, timeout and backoff
/// within the limits.
struct TypePolicy {
  std::uint32_t concurrency = 0;  // of the executor, on one host; 0: as the queue's
  std::uint32_t max_attempts = 3;
  std::uint32_t max_attempts_limit = 1000;  // the most that a record may ask for
  Duration timeout = Duration::zero();      // zero: none, the job may run for days
  Duration timeout_limit = Duration::zero();
  Backoff backoff;
  Delivery delivery = Delivery::kAtLeastOnce;
  OnLeaseLost on_lease_lost = OnLeaseLost::kStop;

  friend bool operator==(const TypePolicy&, const TypePolicy&) = default;
};

/// A recurring task from the configuration. The leader writes it.
struct ConfiguredSchedule {
  std::string key;
  std::shared_ptr<const std::string> record;  // marked as from the configuration
  std::shared_ptr<const schedule::Definition> definition;
  bool sets_paused = false;  // false: only the operator pauses it
};

/// The parameters of one queue's core. Their relations are checked when the configuration is loaded
/// (app/config_check): the session survives a lost renewal, and the lease a lost proof.
struct QueueOptions {
  std::string queue = "default";
  std::string node;      // this member's name
  std::string identity;  // unique to this start of the daemon; part of every claim's nonce
  std::uint64_t first_attempt = 1;  // ids of attempts: a daemon's queues share the runners

  std::uint32_t partitions = 1;        // of the queue
  std::uint64_t partitions_index = 0;  // the ModifyIndex of the key with that number; 0: none
  bool only_single = false;            // no lock is acquired while there is such a key

  std::uint32_t concurrency = 1;
  std::uint32_t prefetch = 0;   // claims held ahead of a free slot
  Duration prefetch_horizon{};  // or as many as are started within this; see AdaptivePrefetch
  Duration preload = 1s;  // a task may be claimed ahead this long before it is due, within prefetch
  std::uint32_t max_unacked = 1000;  // ended, but not yet finished in Consul
  std::uint32_t max_losses = 3;
  std::optional<Rate> rate_limit;        // of claims
  std::optional<HistoryLimits> history;  // none: a finished task is only deleted
  bool serialize_retries = true;         // a failed task holds back its serialKey until its end

  // Consul invalidates a session between one and two TTLs after its last renewal: three renewals
  // fit into one TTL, so that two may be lost.
  Duration session_ttl = 15s;
  Duration renew_interval = 5s;
  // Longer than Consul's own election with its default timing (13 to 20 s): jobs outlive it.
  Duration lock_delay = 30s;
  Duration request_timeout = 3s;
  Duration kill_grace = 5s;
  Duration margin = 1s;  // for scheduling delays, and clocks that drift by up to 1% in lock_delay
  Duration drain_timeout = 30s;
  Duration standoff = 10s;  // after a requested step-down, so that another member takes leadership

  // Limits of a transaction, reads and fence included. Consul's refusals lower the first.
  std::size_t max_operations = limits::kMostOperations;
  std::size_t max_transaction_bytes = limits::kTransactionBytes;
  std::shared_ptr<const CostModel> costs;  // the cost of a write in both; must be set
  // The number of full transactions. A transaction that is not full goes beside one other at most:
  // more of them would each carry less, and Consul's cost is by the transaction.
  std::size_t transactions_in_flight = 16;
  // A task is read again this long before it may be claimed, or up to twice as long, and is not
  // kept in memory until then.
  Duration distance = 1min;

  std::map<std::string, TypePolicy, std::less<>> types;
  std::optional<TypePolicy> any_type;                                // "*"
  std::map<std::string, ConfiguredSchedule, std::less<>> schedules;  // by name

  /// Takes over all options that may change while a queue is led: limits, policies, executors'
  /// types. Names, and the timing that the lease is built on, stay.
  void take_limits(const QueueOptions& other) {
    concurrency = other.concurrency;
    prefetch = other.prefetch;
    prefetch_horizon = other.prefetch_horizon;
    preload = other.preload;
    max_unacked = other.max_unacked;
    max_losses = other.max_losses;
    rate_limit = other.rate_limit;
    history = other.history;
    serialize_retries = other.serialize_retries;
    drain_timeout = other.drain_timeout;
    types = other.types;
    any_type = other.any_type;
    schedules = other.schedules;
  }

  /// The policy of a type; null: no executor takes it.
  [[nodiscard]] const TypePolicy* policy_of(std::string_view type) const {
    if (const auto it = types.find(type); it != types.end()) return &it->second;
    return any_type ? &*any_type : nullptr;
  }
  /// The name of the type's executor in the configuration.
  [[nodiscard]] std::string_view executor_of(std::string_view type) const {
    return types.contains(type) ? type : "*";
  }

  /// Whether each type that has an executor in `other` has one here.
  [[nodiscard]] bool runs_all_of(const QueueOptions& other) const {
    if (any_type || other.any_type) return any_type.has_value();
    return std::all_of(other.types.begin(), other.types.end(),
                       [this](const auto& type) { return types.contains(type.first); });
  }

  /// From a proof of leadership that was sent at T, the lease is trusted until T + lease_span():
  ///
  ///   T                    + lease_span()     + kill_grace   + margin = T + lock_delay
  ///   |- jobs start, run --|- jobs are ended -|- slack ------|- another host may lead
  ///
  /// Whatever the session becomes, Consul gives the lock to nobody else before T + lock_delay. By
  /// then no job runs here, except jobs whose on_lease_lost lets them finish.
  [[nodiscard]] Duration lease_span() const {
    return std::min(lock_delay, kMostLockDelay) - kill_grace - margin;
  }
  /// A few proofs within the span, so that one or two may be lost.
  [[nodiscard]] Duration proof_interval() const { return lease_span() / 4; }
};

}  // namespace lictor::core
