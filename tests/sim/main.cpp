// sim: many runs of the simulation, by seed.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutant.h"
#include "simulation.h"

namespace {

using namespace lictor::core;
using test::Simulation;

constexpr std::string_view kUsage =
    "sim: daemons, a store, a network and clocks that fail, in virtual time; by seed.\n"
    "  sim [--first N] [--seeds N] [--jobs N]  run the seeds; exit 1 if anything is found\n"
    "  sim --seed N [--trace]                  replay one, with all that happens\n"
    "  sim --mutants [--seeds N]               find each deliberate fault (core/mutant.h)\n"
    "  --mutant NAME                           with such a fault\n";

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t seeds = 100;
  unsigned jobs = 1;
  bool trace = false;
  bool mutants = false;
};

struct Named {
  Mutant mutant;
  const char* name;
  const char* what;
};
constexpr Named kMutants[] = {
#define LICTOR_MUTANT(name, what) {Mutant::k##name, #name, what},
    LICTOR_MUTANT_LIST(LICTOR_MUTANT)
#undef LICTOR_MUTANT
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
    } else if (word == "--mutants") {
      arguments.mutants = true;
    } else if (word == "--mutant") {
      const std::string& name = value();
      for (const Named& named : kMutants) {
        if (name == named.name) active_mutant = named.mutant;
      }
      if (active_mutant == Mutant::kNone) bad_usage("no such fault: " + name);
    } else if (word == "--help") {
      std::cout << kUsage;
      std::exit(0);
    } else {
      bad_usage("unknown argument " + word);
    }
  }
  return arguments;
}

// One process's share of the seeds: every `of`th. Returns how many failed.
std::size_t run_seeds(const Arguments& arguments, unsigned share, unsigned of) {
  std::size_t failed = 0, starts = 0, losses = 0, effects = 0, dead = 0, seeds = 0;
  for (std::uint64_t i = share; i < arguments.seeds; i += of) {
    const std::uint64_t seed = arguments.first + i;
    Simulation simulation{seed, arguments.trace};
    const std::string found = simulation.run();
    ++seeds;
    starts += simulation.oracle().starts();
    losses += simulation.oracle().losses();
    effects += simulation.oracle().effects();
    dead += simulation.oracle().dead();
    if (found.empty()) continue;
    std::cout << "seed " << seed << ": " << found << " (sim --seed " << seed << " --trace)"
              << std::endl;
    if (++failed == 10) break;
  }
  std::cout << seeds << " seeds: " << starts << " jobs, " << losses << " lost owners, " << effects
            << " effects, " << dead << " dead letters; " << failed << " failed" << std::endl;
  // Else the faults leave nothing to be checked.
  if (failed == 0 && seeds >= 100 && (starts < 20 * seeds || effects < seeds)) {
    std::cout << "too little happened" << std::endl;
    return 1;
  }
  return failed;
}

bool run_in_processes(const Arguments& arguments) {
  std::vector<pid_t> children;
  for (unsigned share = 0; share < arguments.jobs; ++share) {
    const pid_t child = fork();
    if (child < 0) bad_usage("fork failed");
    if (child == 0) _exit(run_seeds(arguments, share, arguments.jobs) == 0 ? 0 : 1);
    children.push_back(child);
  }
  bool well = true;
  for (const pid_t child : children) {
    int status = 0;
    well = waitpid(child, &status, 0) == child && status == 0 && well;
  }
  return well;
}

// Each fault is to be found by the seeds that the others are run with.
bool find_mutants(const Arguments& arguments) {
  bool all = true;
  for (const Named& named : kMutants) {
    active_mutant = named.mutant;
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
  active_mutant = Mutant::kNone;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read_arguments({argv + 1, argv + argc});
  if (arguments.mutants) return find_mutants(arguments) ? 0 : 1;
  if (arguments.jobs > 1) return run_in_processes(arguments) ? 0 : 1;
  return run_seeds(arguments, 0, 1) == 0 ? 0 : 1;
}
