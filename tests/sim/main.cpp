// sim: many runs of the simulation, by seed.

#include <future>
#include <iomanip>
#include <iostream>

#include <CLI/CLI.hpp>

#include "fault.h"
#include "simulation.h"

namespace {

using namespace lictor::core;
using test::Simulation;

constexpr std::uint64_t kEnoughSeeds = 100;
constexpr std::uint64_t kAllArrows = 50'000;

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t seeds = 100;
  unsigned jobs = 1;
  bool trace = false;
  bool faults = false;
  bool stats = false;
};

struct Named {
  Fault fault;
  const char* name;
  const char* what;
  std::uint64_t found_by;
};
constexpr Named kFaults[] = {
#define X(name, what, found_by) {Fault::k##name, #name, what, found_by},
    LICTOR_FAULTS_OF_QUEUE(X)
#undef X
};

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--first", arguments.first, "the first seed");
  app.add_option("--seeds", arguments.seeds, "how many are run; exit 1 if anything is found");
  app.add_option("--jobs", arguments.jobs, "by so many threads")->check(CLI::Range(1, 1024));
  app.add_option_function<std::uint64_t>(
      "--seed",
      [&](std::uint64_t seed) {
        arguments.first = seed;
        arguments.seeds = 1;
      },
      "replay one");
  app.add_flag("--trace", arguments.trace, "with all that happens");
  app.add_flag("--stats", arguments.stats, "how often what went wrong");
  app.add_flag("--faults", arguments.faults, "find each deliberate fault (faults.py)");
  app.add_option_function<std::string>(
      "--fault",
      [](const std::string& name) {
        for (const Named& named : kFaults) {
          if (name == named.name) active_fault = named.fault;
        }
        if (active_fault == Fault::kNone) throw CLI::ValidationError{"no such fault: " + name};
      },
      "with such a fault");
}

struct Totals {
  std::size_t seeds = 0, failed = 0, jobs = 0, losses = 0, effects = 0, dead = 0;
  std::array<std::size_t, test::kMisfortunes> misfortunes{};
  TaskTable::Walked walked{};

  void add(const Totals& other) {
    seeds += other.seeds;
    failed += other.failed;
    jobs += other.jobs;
    losses += other.losses;
    effects += other.effects;
    dead += other.dead;
    for (std::size_t i = 0; i < misfortunes.size(); ++i) misfortunes[i] += other.misfortunes[i];
    for (std::size_t i = 0; i < walked.size(); ++i) walked[i] |= other.walked[i];
  }
};

// Every `jobs`th seed.
Totals run_share(const Arguments& arguments, unsigned share) {
  Totals totals;
  for (std::uint64_t i = share; i < arguments.seeds && totals.failed < 10; i += arguments.jobs) {
    const std::uint64_t seed = arguments.first + i;
    Simulation simulation{seed, arguments.trace};
    const std::string found = simulation.run();
    const auto& oracle = simulation.oracle();
    totals.add({1, found.empty() ? 0U : 1U, oracle.starts(), oracle.losses(), oracle.effects(),
                oracle.dead(), simulation.misfortunes(), simulation.walked()});
    if (found.empty()) continue;
    const std::string number = std::to_string(seed);
    std::cout << "seed " + number + ": " + found + " (sim --seed " + number + " --trace)\n"
              << std::flush;
  }
  return totals;
}

Totals run_seeds(const Arguments& arguments) {
  std::vector<std::future<Totals>> shares;
  for (unsigned share = 0; share < arguments.jobs; ++share) {
    shares.push_back(std::async(std::launch::async, run_share, arguments, share));
  }
  Totals totals;
  for (std::future<Totals>& share : shares) totals.add(share.get());
  return totals;
}

// Arrows that the core must have and that no run here can walk.
bool has_no_way(TaskState from, TaskState to) {
  // Jobs that outlive the lease (tests/unit/core/partitions_test.cpp).
  if (from == TaskState::kRunning && to == TaskState::kForeign) return true;
  // A lock lost within the milliseconds of that read: too rare to be met (the same test).
  if (from == TaskState::kChecking && to == TaskState::kForeign) return true;
  // A version that was seen after our claim has another index than our claim.
  return from == TaskState::kChecking && to == TaskState::kClaimed;
}

// Reports whether every arrow of the state diagram (core/tasks/task_state.h) is walked, or is known
// to be out of reach here.
bool report_arrows(const Arguments& arguments, const Totals& totals) {
  bool well = true;
  for (std::size_t i = 0; i < kTaskStates; ++i) {
    for (std::size_t j = 0; j < kTaskStates; ++j) {
      const auto from = static_cast<TaskState>(i);
      const auto to = static_cast<TaskState>(j);
      const bool walked = (totals.walked[i] >> j & 1) != 0;
      if (walked || !may_become(from, to) || has_no_way(from, to)) continue;
      std::cout << "never walked: " << name_of(from) << " to " << name_of(to) << '\n';
      well = false;
    }
  }
  return well || totals.seeds < arguments.seeds;
}

bool report(const Arguments& arguments, const Totals& totals) {
  std::cout << totals.seeds << " seeds: " << totals.jobs << " jobs, " << totals.losses
            << " lost owners, " << totals.effects << " effects, " << totals.dead
            << " dead letters; " << totals.failed << " failed" << std::endl;
  bool well = totals.failed == 0;
  for (std::size_t i = 0; i < totals.misfortunes.size(); ++i) {
    const auto name = test::kMisfortuneNames[i];
    if (arguments.stats) std::cout << std::setw(12) << totals.misfortunes[i] << ' ' << name << '\n';
    const bool due = well && totals.seeds >= kEnoughSeeds;
    if (!due || totals.misfortunes[i] != 0) continue;
    std::cout << "never happened: " << name << '\n';
    well = false;
  }
  if (well && totals.seeds >= kAllArrows) well = report_arrows(arguments, totals);
  // Otherwise the faults leave nothing to be checked.
  if (well && totals.seeds >= kEnoughSeeds &&
      (totals.jobs < 20 * totals.seeds || totals.effects < totals.seeds)) {
    std::cout << "too little happened\n";
    well = false;
  }
  return well;
}

// Each fault must be found by one of the seeds.
bool find_faults(const Arguments& arguments) {
  bool all = true;
  for (const Named& named : kFaults) {
    active_fault = named.fault;
    std::uint64_t seed = named.found_by;
    std::string found = Simulation{seed}.run();
    for (std::uint64_t i = 0; i < arguments.seeds && found.empty(); ++i) {
      seed = arguments.first + i;
      found = Simulation{seed}.run();
    }
    std::cout << std::left << std::setw(18) << named.name;
    if (found.empty()) {
      all = false;
      std::cout << "NOT FOUND: " << named.what << std::endl;
    } else {
      std::cout << "seed " << std::setw(6) << seed << found << std::endl;
    }
  }
  active_fault = Fault::kNone;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Daemons, a store, a network and clocks that fail, in virtual time; by seed."};
  Arguments arguments;
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv)
  if (arguments.faults) return find_faults(arguments) ? 0 : 1;
  return report(arguments, run_seeds(arguments)) ? 0 : 1;
}
