#pragma once

// One run: a cluster, a mix of faults and of tasks drawn from the seed, and the oracle that
// watches.
//
//   faults fly (120 s of virtual time) -> healed: all that was written ends -> no faults at all:
//   order, pause, prefetch, withdrawal, a key used anew

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster.h"
#include "oracle.h"

namespace lictor::core::test {

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, bool trace = false);

  /// The first thing that went wrong; empty: nothing did.
  std::string run();

  [[nodiscard]] const Oracle& oracle() const { return oracle_; }

 private:
  // How likely what is, in this run.
  struct Mix {
    double lose_request = 0, lose_reply = 0, refuse = 0, late = 0, zombie = 0;
    double crash = 0, pause = 0, kill_session = 0, outage = 0, fail_over = 0, control = 0, stop = 0;
    double strangers = 0, clock_step = 0, nonsense = 0, reap = 0;
    bool large = false;
  };

  [[nodiscard]] QueueOptions draw_options();
  void draw_mix();
  [[nodiscard]] JobPlan plan(const Task& task);
  [[nodiscard]] Fault fault(const Daemon& daemon, const Effect& effect);
  void misfortune();
  void misfortune_of_store();
  void produce();
  void put(Task& task);

  void run_with_faults();
  void heal();
  void try_order();
  void try_limits();
  void try_anew();
  [[nodiscard]] bool failed() const { return !cluster_.violations().empty(); }

  [[nodiscard]] bool chance(double p) { return random_.fraction() < p; }
  [[nodiscard]] Duration between(Duration least, Duration most);

  Random random_;
  Cluster cluster_;
  Oracle oracle_;
  QueueOptions options_;
  Mix mix_;
  enum class Phase { kFaults, kHealed, kOrder, kHang, kAnew } phase_ = Phase::kFaults;
  std::map<const Daemon*, Instant> outage_until_;
  Instant leaderless_until_ = Instant::min();
  std::uint64_t serial_ = 0;
};

}  // namespace lictor::core::test
