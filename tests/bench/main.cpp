// lictor beside Consul itself and beside the plain loop, in one run on one machine.
//
//   bench [RUNS]       medians of RUNS interleaved runs (3)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr std::size_t kTasks = 2'000;
constexpr std::size_t kPickups = 200;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Each run on a fresh Consul with its data on disk.
double rate(const std::function<double(const live::ConsulAgent&)>& seconds) {
  const live::ConsulAgent consul;
  return static_cast<double>(kTasks) / seconds(consul);
}

void report_drain(std::size_t runs) {
  std::vector<double> fresh, kept, wide, ordered, single;
  for (std::size_t i = 0; i < runs; ++i) {
    fresh.push_back(rate([](const auto& consul) { return plain_loop(consul, kTasks, true); }));
    kept.push_back(rate([](const auto& consul) { return plain_loop(consul, kTasks, false); }));
    wide.push_back(
        rate([](const auto& consul) { return drain(consul, kTasks, R"({"concurrency": 64})"); }));
    ordered.push_back(
        rate([](const auto& consul) { return drain(consul, kTasks, R"({"prefetch": 64})"); }));
    single.push_back(rate([](const auto& consul) { return drain(consul, kTasks, "{}"); }));
    std::fprintf(stderr, "bench: run %zu of %zu done\n", i + 1, runs);
  }
  const double base = median(fresh);
  std::printf("\n%zu waiting no-op tasks, tasks/s (median of %zu runs)\n", kTasks, runs);
  const auto line = [&](const char* what, const std::vector<double>& rates) {
    std::printf("  %-52s %8.0f   x%.1f\n", what, median(rates), median(rates) / base);
  };
  line("plain loop, a new connection a request", fresh);
  line("plain loop, keep-alive", kept);
  line("lictor, concurrency 64", wide);
  line("lictor, concurrency 1, prefetch 64 (strict order)", ordered);
  line("lictor, concurrency 1", single);
}

void report_pickup() {
  const live::ConsulAgent consul;
  const Latency floor = consul_wakeup_and_claim(consul, kPickups);
  const Latency in_process = pickup(consul, kPickups, false);
  const Latency program = pickup(consul, kPickups, true);
  std::printf("\nfrom the PUT to the begin of the job, ms (%zu tasks, one at a time)\n", kPickups);
  const auto line = [&](const char* what, const Latency& latency) {
    std::printf("  %-52s p50 %6.2f  p99 %6.2f   x%.1f\n", what, latency.median_ms, latency.p99_ms,
                latency.median_ms / floor.median_ms);
  };
  line("Consul alone: wake-up and claim", floor);
  line("lictor, C++ executor", in_process);
  line("lictor, exec", program);
}

}  // namespace
}  // namespace lictor::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string{argv[1]} == "run") return lictor::bench::run_worker(argc, argv);
  try {
    lictor::bench::report_drain(argc > 1 ? static_cast<std::size_t>(std::max(1, std::atoi(argv[1])))
                                         : 3);
    lictor::bench::report_pickup();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
