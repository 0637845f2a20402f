// Measures lictor beside Consul itself, and beside a plain program without lictor, in one run on
// one machine. Prints a table of ratios.

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

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
    Part{"due", measure_due, "many tasks due at one instant"},
    Part{"takeover", measure_takeover,
         "the leader killed, or hung, until its job starts elsewhere"},
    Part{"backlog", measure_backlog, "what many tasks that wait for tomorrow cost"},
    Part{"producers", measure_producers, "writing and cancelling many"},
    Part{"scale-out", measure_scale_out, "what more daemons bring, with 16 partitions"}};

struct Options {
  Sizes sizes;
  std::string json;
  std::vector<std::string> parts;
};

Sizes quick() {
  Sizes sizes;
  sizes.fresh_consul = false;
  sizes.runs = 1;
  sizes.connections = {2, 4};
  sizes.drained = 10'000;
  sizes.drained_singly = 1'000;
  sizes.picked_up = 100;
  sizes.programs = 1'000;
  sizes.due = 5'000;
  sizes.killed = 20;
  sizes.hung = 2;
  sizes.backlog = 20'000;
  sizes.backlog_picked_up = 30;
  sizes.idle = 3s;
  sizes.produced = 10'000;
  sizes.daemons = {1, 4};
  sizes.worked = 5s;
  return sizes;
}

Sizes smoke() {
  Sizes sizes = quick();
  sizes.connections = {2};
  sizes.drained = sizes.programs = 100;
  sizes.drained_singly = 30;
  sizes.picked_up = sizes.backlog_picked_up = 5;
  sizes.due = sizes.produced = 200;
  sizes.killed = 2;
  sizes.hung = 1;
  sizes.preload = {1s};
  sizes.backlog = 500;
  sizes.idle = 100ms;
  sizes.daemons = {1};
  sizes.worked = 1s;
  return sizes;
}

void add_options(CLI::App& app, Options& options) {
  app.add_flag_callback(
      "--quick", [&] { options.sizes = quick(); },
      "a small version of everything, within a minute: for the work on lictor");
  app.add_flag_callback(
      "--smoke", [&] { options.sizes = smoke(); },
      "a tiny one: whether it still works; its figures mean nothing");
  app.add_option("--runs", options.sizes.runs, "of which the median counts, where one is short")
      ->check(CLI::Range(1, 100));
  app.add_option("--json", options.json, "where the table goes as JSON");
  std::vector<std::string> names;
  std::string footer = "Parts:\n";
  for (const Part& part : kParts) {
    names.emplace_back(part.name);
    footer += fmt::format("  {:14}{}\n", part.name, part.what);
  }
  app.add_option("PART", options.parts, "single parts")->check(CLI::IsMember(names));
  app.footer(footer);
}

int run(const Options& options) {
  Report report;
  Bench bench{options.sizes, report};
  int failed = 0;
  std::printf("%s\n", machine().c_str());
  for (const Part& part : kParts) {
    const auto& parts = options.parts;
    if (!parts.empty() && std::find(parts.begin(), parts.end(), part.name) == parts.end()) continue;
    // A measurement that fails must not cost the figures of the others.
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
  CLI::App app{"Measures lictor beside Consul itself, and beside a plain program without lictor."};
  lictor::bench::Options options;
  lictor::bench::add_options(app, options);
  CLI11_PARSE(app, argc, argv)
  try {
    return lictor::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}
