// Measures lictor beside Consul itself, and beside a plain program without lictor, in one run on
// one machine. Prints a table of ratios.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.h"

namespace lictor::bench {
namespace {

struct Part {
  std::string_view name;
  void (*measure)(Bench&);
  std::string_view what;
};
constexpr std::array kParts{
    Part{"drain", measure_drain, "waiting tasks, beside raw transactions and the plain loop"},
    Part{"pickup", measure_pickup, "one task on an idle daemon, from its PUT to its start"},
    Part{"programs", measure_programs, "/bin/true, beside posix_spawn and wait"},
    Part{"workers", measure_workers, "warm workers, beside C++ executors and the same by exec"},
    Part{"due", measure_due, "many tasks due at one instant"},
    Part{"takeover", measure_takeover,
         "the leader killed, or hung, until its job starts elsewhere"},
    Part{"backlog", measure_backlog, "what many tasks that wait for tomorrow cost"},
    Part{"schedules", measure_schedules,
         "an idle leader with many, and their ticks at one instant"},
    Part{"producers", measure_producers, "writing and cancelling many"},
    Part{"writes", measure_write_load, "Consul's processor time while producers write"},
    Part{"scale", measure_scale, "drain rate over the number of waiting tasks"},
    Part{"scale-out", measure_scale_out, "what more daemons bring, with 16 partitions"}};

struct Options {
  Sizes sizes;
  std::string json;
  std::vector<std::string_view> parts;
  bool help = false;
};

void usage() {
  std::printf(
      "bench [--quick | --smoke] [--runs N] [--json FILE] [PART...]\n"
      "  --quick   a small version of everything, within a minute: for the work on lictor\n"
      "  --smoke   a tiny one: whether it still works; its figures mean nothing\n"
      "  --runs    of which the median counts, where a measurement is short (3)\n"
      "  --json    where the table goes as JSON\n");
  for (const Part& part : kParts) {
    std::printf("  %-14s%s\n", part.name.data(), part.what.data());
  }
}

Sizes quick() {
  Sizes sizes;
  sizes.fresh_consul = false;
  sizes.runs = 1;
  sizes.connections = {2, 4};
  sizes.drained = 10'000;
  sizes.drained_singly = 1'000;
  sizes.picked_up = 100;
  sizes.programs = 1'000;
  sizes.scripts = 60;
  sizes.due = 5'000;
  sizes.killed = 20;
  sizes.hung = 2;
  sizes.backlog = 20'000;
  sizes.backlog_picked_up = 30;
  sizes.schedules = 2'000;
  sizes.ticks = 300;
  sizes.idle = 3s;
  sizes.produced = 10'000;
  sizes.write_load = 5s;
  sizes.scale = {1'000, 5'000, 20'000};
  sizes.daemons = {1, 4};
  sizes.worked = 5s;
  return sizes;
}

Sizes smoke() {
  Sizes sizes = quick();
  sizes.connections = {2};
  sizes.drained = sizes.programs = 100;
  sizes.drained_singly = 30;
  sizes.scripts = 5;
  sizes.picked_up = sizes.backlog_picked_up = 5;
  sizes.due = sizes.produced = 200;
  sizes.schedules = sizes.ticks = 20;
  sizes.killed = 2;
  sizes.hung = 1;
  sizes.preload = {1s};
  sizes.backlog = 500;
  sizes.idle = 100ms;
  sizes.write_load = 500ms;
  sizes.scale = {100, 300};
  sizes.daemons = {1};
  sizes.worked = 1s;
  return sizes;
}

// Returns false where the arguments make no sense.
bool read_options(int argc, char** argv, Options& options) {
  std::size_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (word == "--help") {
      options.help = true;
    } else if (word == "--quick") {
      options.sizes = quick();
    } else if (word == "--smoke") {
      options.sizes = smoke();
    } else if (word == "--runs") {
      runs = static_cast<std::size_t>(std::atoi(value()));
      if (runs < 1 || runs > 100) return false;
    } else if (word == "--json") {
      options.json = value();
    } else if (std::any_of(kParts.begin(), kParts.end(),
                           [&](const Part& part) { return part.name == word; })) {
      options.parts.push_back(word);
    } else {
      return false;
    }
  }
  if (runs != 0) options.sizes.runs = runs;
  return true;
}

int run(const Options& options) {
  Report report;
  Bench bench{options.sizes, report};
  int failed = 0;
  std::printf("%s\n", machine().c_str());
  for (const Part& part : kParts) {
    const auto& parts = options.parts;
    if (!parts.empty() && std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    // One that cannot be measured must not cost the figures of the others.
    try {
      part.measure(bench);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench: %s: %s\n", part.name.data(), error.what());
      failed = 1;
    }
  }
  std::printf("\n%s\nat the end: %s\n", report.table().c_str(), machine().c_str());
  if (!options.json.empty()) live::write_text(options.json, report.json());
  return failed;
}

}  // namespace

void Bench::progress(const std::string& what) {
  static const std::int64_t begin = live::monotonic_ns();
  std::fprintf(stderr, "bench: %4.0f s  %s\n", live::seconds_between(begin, live::monotonic_ns()),
               what.c_str());
}

std::shared_ptr<live::ConsulAgent> Bench::consul() {
  if (sizes_.fresh_consul) return std::make_shared<live::ConsulAgent>();
  if (!shared_) shared_ = std::make_shared<live::ConsulAgent>();
  live::Kv kv{shared_->address()};
  require(kv.request("DELETE", "/v1/kv/?recurse").status == 200, "cannot empty Consul's KV");
  return shared_;
}

}  // namespace lictor::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view{argv[1]} == "lictor") {
    return lictor::bench::run_lictor(argc - 1, argv + 1);
  }
  try {
    lictor::bench::Options options;
    const bool understood = lictor::bench::read_options(argc, argv, options);
    if (!understood || options.help) {
      lictor::bench::usage();
      return understood ? 0 : 2;
    }
    return lictor::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}
