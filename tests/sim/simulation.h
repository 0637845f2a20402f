#pragma once

// One run: a cluster, a mix of faults and of tasks drawn from the seed, and the oracle that
// watches.
//
//   faults fly (120 s of virtual time) -> healed: all that was written ends -> no faults at all:
//   order, pause, prefetch, withdrawal, a key used again

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "cluster.h"
#include "oracle.h"

namespace lictor::core::test {

// All misfortunes: name, and probability in a run that has it at all, for each request or each
// moment.
#define LICTOR_MISFORTUNES(X)                                     \
  X(LoseRequest, "requests lost", 0.05)                           \
  X(LoseReply, "replies lost", 0.05)                              \
  X(Refuse, "connections refused", 0.03)                          \
  X(Late, "requests and replies late, out of order", 0.05)        \
  X(Zombie, "writes that land after their sender gave up", 0.04)  \
  X(Spurious, "watches answered with nothing new", 0.05)          \
  X(Stale, "watches answered with what was, after what is", 0.05) \
  X(Rewound, "X-Consul-Index gone back", 0.03)                    \
  X(NoIndex, "X-Consul-Index below 1", 0.03)                      \
  X(Cut, "bodies cut short", 0.03)                                \
  X(TooMany, "429", 0.02)                                         \
  X(Error, "500 by a proxy", 0.02)                                \
  X(BadGateway, "502", 0.02)                                      \
  X(Crash, "daemons killed", 0.03)                                \
  X(Warden, "wardens that die, too, or between steps", 0.5)       \
  X(Pause, "daemons frozen", 0.04)                                \
  X(Stop, "daemons stopped", 0.03)                                \
  X(Reload, "executors taken away and given back", 0.03)          \
  X(Outage, "partitions", 0.04)                                   \
  X(KillSession, "sessions killed", 0.03)                         \
  X(FailOver, "Consul without a leader, its timers again", 0.03)  \
  X(Reap, "tombstones reaped", 0.05)                              \
  X(Control, "pauses and step-downs", 0.03)                       \
  X(OverwriteControl, "the control key overwritten", 0.02)        \
  X(DeleteControl, "the control key deleted", 0.02)               \
  X(OverwriteLeader, "the leader key overwritten", 0.03)          \
  X(DeleteLeader, "the leader key deleted", 0.01)                 \
  X(DeleteAll, "all keys of the queue deleted", 0.01)             \
  X(Touch, "strangers that write beside lictor's fields", 0.05)   \
  X(Withdraw, "tasks deleted", 0.2)                               \
  X(Nonsense, "records that are none", 0.05)                      \
  X(ClockStep, "clocks set by seconds", 0.03)                     \
  X(ClockDays, "clocks set by days", 0.02)                        \
  X(StandStill, "hosts stopped with their clocks", 0.03)          \
  X(ForgetLockDelay, "lock-delays forgotten", 0.05)               \
  X(Hang, "jobs that hang", 0.3)                                  \
  X(Fail, "jobs that fail", 0.2)                                  \
  X(Unstarted, "jobs that cannot be started", 0.1)                \
  X(Resize, "another number of partitions", 0.02)                 \
  X(OverwriteCount, "the number of partitions overwritten", 0.03)

enum class Misfortune {
#define LICTOR_MISFORTUNE(name, what, p) k##name,
  LICTOR_MISFORTUNES(LICTOR_MISFORTUNE)
#undef LICTOR_MISFORTUNE
};
inline constexpr std::array kMisfortuneNames{
#define LICTOR_MISFORTUNE(name, what, p) std::string_view{what},
    LICTOR_MISFORTUNES(LICTOR_MISFORTUNE)
#undef LICTOR_MISFORTUNE
};
inline constexpr std::size_t kMisfortunes = kMisfortuneNames.size();

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, bool trace = false);

  /// The first fault found; empty: none.
  std::string run();

  [[nodiscard]] const Oracle& oracle() const { return oracle_; }
  /// The steps between task states that were taken.
  [[nodiscard]] TaskTable::Walked walked() const { return cluster_.walked(); }
  /// How often each misfortune happened.
  [[nodiscard]] std::array<std::size_t, kMisfortunes> misfortunes() const;

 private:
  [[nodiscard]] QueueOptions draw_options();
  void draw_mix();
  void draw_link();
  [[nodiscard]] JobPlan plan(const Task& task);
  [[nodiscard]] Warden warden();
  [[nodiscard]] Fault fault(const Daemon& daemon, const Effect& effect);
  void misfortune();
  void misfortune_of_store();
  void produce();
  void produce_crowd(std::size_t count, Duration interval);
  [[nodiscard]] std::string draw_record();
  /// A task with a record of its own, to be changed before put().
  [[nodiscard]] Task& make(const std::string& id);
  void put(Task& task);

  void run_with_faults();
  void heal();
  void try_order();
  void try_limits();
  void try_anew();
  void try_pace();
  void try_rest();
  void fail(const std::string& what) { cluster_.violation(what); }
  [[nodiscard]] bool failed() const { return !cluster_.violations().empty(); }

  [[nodiscard]] bool chance(double p) { return random_.fraction() < p; }
  [[nodiscard]] double& mix(Misfortune m) { return mix_[static_cast<std::size_t>(m)]; }
  /// Whether the misfortune happens now; counted.
  [[nodiscard]] bool strikes(Misfortune m);
  [[nodiscard]] Tampering tampering();
  void misfortune_of_daemon(Daemon& daemon);
  void reload(Daemon& daemon, bool all_executors);
  void strangers();
  void control(bool paused, const std::string& step_down);
  void touch();
  void delete_all();
  [[nodiscard]] KvWrite follower();
  void withdraw(const std::string& key);
  void remove(const std::string& key);
  void check_leftovers();
  [[nodiscard]] bool all_know_leaders();
  [[nodiscard]] Duration between(Duration least, Duration most);

  std::uint64_t seed_;
  Random random_;
  Cluster cluster_;
  Oracle oracle_;
  QueueOptions options_;
  std::array<double, kMisfortunes> mix_{};  // the probabilities in this run
  std::array<std::size_t, kMisfortunes> struck_{};
  std::string prefix_ = "t";        // of the tasks' ids
  bool large_ = false;              // few records fit into a transaction, and some not at all
  std::size_t largest_record_ = 0;  // over a slow link; 0: all are short
  bool crowded_ = false;            // thousands of tasks wait for tomorrow
  bool rated_ = false;              // few tasks are started in all of the run, and clocks are right
  bool overwrites_count_ = false;
  bool remaps_ = false;
  bool restores_ = false;
  std::optional<dev::State> snapshot_;
  Instant look_until_ = Instant::min();  // queries do not wait
  enum class Phase { kFaults, kHealed, kOrder, kHang, kAnew, kRest } phase_ = Phase::kFaults;
  std::map<const Daemon*, Instant> outage_until_;
  Instant leaderless_until_ = Instant::min();
  std::uint64_t serial_ = 0;
};

}  // namespace lictor::core::test
