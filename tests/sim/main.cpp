// sim: many runs of the simulation, by seed.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fault.h"
#include "simulation.h"

namespace {

using namespace lictor::core;
using test::Simulation;

#ifdef LICTOR_SIM_WIRE
constexpr const char* kProgram = "sim_wire";
#else
constexpr const char* kProgram = "sim";
#endif
constexpr std::uint64_t kEnoughSeeds = 100;
constexpr std::uint64_t kAllArrows = 50'000;
constexpr std::chrono::seconds kProgress{10};

constexpr std::string_view kUsage =
    "sim: daemons, a store, a network and clocks that fail, in virtual time; by seed.\n"
    "  sim [--first N] [--seeds N] [--jobs N]  run the seeds; exit 1 if anything is found\n"
    "      [--stats]                           how often what went wrong\n"
    "  sim --seed N [--trace]                  replay one, with all that happens\n"
    "  sim --faults [--seeds N]                find each deliberate fault (faults.py)\n"
    "  --fault NAME                            with such a fault\n";

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
};
constexpr Named kFaults[] = {
#define X(name, what) {Fault::k##name, #name, what},
#ifdef LICTOR_SIM_WIRE
    LICTOR_FAULTS_IN_WIRE(X)
#else
    LICTOR_CORE_FAULTS(X)
#endif
#undef X
};

[[noreturn]] void bad_usage(const std::string& what) {
  std::cerr << "sim: " << what << '\n' << kUsage;
  std::exit(2);
}

Arguments read_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) bad_usage(word + ": a value is missing");
      return words[++i];
    };
    const auto number = [&] {
      const std::string& text = value();
      char* end = nullptr;
      const std::uint64_t read = std::strtoull(text.c_str(), &end, 10);
      if (text.empty() || *end != '\0') bad_usage(word + ": expected a number, got " + text);
      return read;
    };
    if (word == "--seed") {
      arguments.first = number();
      arguments.seeds = 1;
    } else if (word == "--first") {
      arguments.first = number();
    } else if (word == "--seeds") {
      arguments.seeds = number();
    } else if (word == "--jobs") {
      arguments.jobs = static_cast<unsigned>(std::max<std::uint64_t>(1, number()));
    } else if (word == "--trace") {
      arguments.trace = true;
    } else if (word == "--stats") {
      arguments.stats = true;
    } else if (word == "--faults") {
      arguments.faults = true;
    } else if (word == "--fault") {
      const std::string& name = value();
      for (const Named& named : kFaults) {
        if (name == named.name) active_fault = named.fault;
      }
      if (active_fault == Fault::kNone) bad_usage("no such fault: " + name);
    } else if (word == "--help") {
      std::cout << kUsage;
      std::exit(0);
    } else {
      bad_usage("unknown argument " + word);
    }
  }
  return arguments;
}

// What a process did; small enough for a pipe to take it whole.
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
static_assert(sizeof(Totals) <= PIPE_BUF && std::is_trivially_copyable_v<Totals>);

// One process's share of the seeds: every `of`th. Tells `tell` about each second.
Totals run_seeds(const Arguments& arguments, unsigned share,
                 const std::function<void(const Totals&)>& tell) {
  Totals totals;
  auto told_at = std::chrono::steady_clock::now();
  for (std::uint64_t i = share; i < arguments.seeds && totals.failed < 10; i += arguments.jobs) {
    const std::uint64_t seed = arguments.first + i;
    Simulation simulation{seed, arguments.trace};
    const std::string found = simulation.run();
    const auto& oracle = simulation.oracle();
    totals.add({1, found.empty() ? 0U : 1U, oracle.starts(), oracle.losses(), oracle.effects(),
                oracle.dead(), simulation.misfortunes(), simulation.walked()});
    if (!found.empty()) {
      std::cout << "seed " + std::to_string(seed) + ": " + found + " (" + kProgram + " --seed " +
                       std::to_string(seed) + " --trace)\n"
                << std::flush;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - told_at < std::chrono::seconds{1}) continue;
    told_at = now;
    tell(totals);
  }
  tell(totals);
  return totals;
}

// Each share in a process of its own, which writes its totals into a pipe.
Totals run_in_processes(const Arguments& arguments) {
  struct Child {
    pid_t pid = 0;
    Totals totals;
  };
  std::vector<Child> children(arguments.jobs);
  std::vector<pollfd> pipes;
  for (unsigned share = 0; share < arguments.jobs; ++share) {
    int ends[2];
    if (pipe(ends) != 0) bad_usage("pipe failed");
    children[share].pid = fork();
    if (children[share].pid < 0) bad_usage("fork failed");
    if (children[share].pid == 0) {
      run_seeds(arguments, share, [&](const Totals& totals) {
        if (write(ends[1], &totals, sizeof totals) != sizeof totals) _exit(1);
      });
      _exit(0);
    }
    close(ends[1]);
    pipes.push_back({ends[0], POLLIN, 0});
  }
  const auto sum = [&] {
    Totals totals;
    for (const Child& child : children) totals.add(child.totals);
    return totals;
  };
  auto printed_at = std::chrono::steady_clock::now();
  for (unsigned open = arguments.jobs; open != 0;) {
    if (poll(pipes.data(), pipes.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].revents == 0) continue;
      if (read(pipes[i].fd, &children[i].totals, sizeof(Totals)) == sizeof(Totals)) continue;
      close(pipes[i].fd);
      pipes[i].fd = -1;
      --open;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - printed_at < kProgress) continue;
    printed_at = now;
    const Totals so_far = sum();
    std::cerr << so_far.seeds << " of " << arguments.seeds << " seeds, " << so_far.failed
              << " failed" << std::endl;
  }
  Totals totals = sum();
  for (const Child& child : children) {
    int status = 0;
    // One that died has found something, too.
    if (waitpid(child.pid, &status, 0) != child.pid || status != 0) ++totals.failed;
  }
  return totals;
}

// Arrows that the core must have and that nothing here can walk.
bool has_no_way(TaskState from, TaskState to) {
  // Jobs that outlive the lease (tests/unit/core/partitions_test.cpp).
  if (from == TaskState::kRunning && to == TaskState::kForeign) return true;
  // A lock lost within the milliseconds of that read: too rare to be met (the same test).
  if (from == TaskState::kChecking && to == TaskState::kForeign) return true;
  // Whatever was seen after our claim has another index than our claim.
  return from == TaskState::kChecking && to == TaskState::kClaimed;
}

// Every arrow of the state diagram (core/tasks/task_state.h) is walked, or is known to have no way
// here.
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
    const bool due =
        well && totals.seeds >= kEnoughSeeds && test::can_befall(static_cast<test::Misfortune>(i));
    if (!due || totals.misfortunes[i] != 0) continue;
    std::cout << "never happened: " << name << '\n';
    well = false;
  }
  if (well && totals.seeds >= kAllArrows) well = report_arrows(arguments, totals);
  // Else the faults leave nothing to be checked.
  if (well && totals.seeds >= kEnoughSeeds &&
      (totals.jobs < 20 * totals.seeds || totals.effects < totals.seeds)) {
    std::cout << "too little happened\n";
    well = false;
  }
  return well;
}

// Each fault is to be found by the seeds that the others are run with.
bool find_faults(const Arguments& arguments) {
  bool all = true;
  for (const Named& named : kFaults) {
    active_fault = named.fault;
    std::string found;
    std::uint64_t seed = arguments.first;
    for (; seed < arguments.first + arguments.seeds; ++seed) {
      found = Simulation{seed}.run();
      if (!found.empty()) break;
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
  const Arguments arguments = read_arguments({argv + 1, argv + argc});
  if (arguments.faults) return find_faults(arguments) ? 0 : 1;
  const Totals totals = arguments.jobs > 1 ? run_in_processes(arguments)
                                           : run_seeds(arguments, 0, [](const Totals&) {});
  return report(arguments, totals) ? 0 : 1;
}
