// Whether the cost grows with the work alone: the drain rate over the number of waiting tasks.

#include <algorithm>
#include <utility>

#include "bench.h"
#include "raw.h"

namespace lictor::bench {
namespace {

std::pair<double, double> extremes(const Chart::Line& line) {
  const auto [low, high] =
      std::minmax_element(line.points.begin(), line.points.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return {low->second, high->second};
}

}  // namespace

void measure_scale(Bench& bench) {
  Chart chart{"Drain rate over the number of waiting tasks", "waiting tasks (logarithmic)",
              "tasks a second"};
  Chart::Line own{"lictor, concurrency 64", {}};
  Chart::Line ordered{"lictor, concurrency 1, prefetch 64", {}};
  Chart::Line raw{"raw transactions, 4 connections", {}};
  for (const std::size_t count : bench.sizes().scale) {
    bench.tell("scale: " + std::to_string(count) + " tasks");
    // What is over in a moment is measured more often.
    const std::size_t runs = count <= 10'000 ? bench.sizes().runs : 1;
    std::vector<double> own_rates, ordered_rates, raw_rates;
    for (std::size_t run = 0; run < runs; ++run) {
      raw_rates.push_back(
          bench.on_consul([&](const auto& consul) { return raw_drain(consul, count, 4).rate; }));
      own_rates.push_back(bench.on_consul(
          [&](const auto& at) { return drain(at, count, R"({"concurrency": 64})").rate; }));
      ordered_rates.push_back(bench.on_consul(
          [&](const auto& at) { return drain(at, count, R"({"prefetch": 64})").rate; }));
    }
    const auto x = static_cast<double>(count);
    own.points.emplace_back(x, median(own_rates));
    ordered.points.emplace_back(x, median(ordered_rates));
    raw.points.emplace_back(x, median(raw_rates));
    bench.add({"drain " + std::to_string(count) + ", concurrency 64", "tasks/s",
               own.points.back().second, raw.points.back().second, raw.name});
  }
  const auto [slowest, fastest] = extremes(own);
  const auto [raw_slowest, raw_fastest] = extremes(raw);
  bench.add({"drain, the slowest of these", "tasks/s", slowest, fastest, "the fastest of these",
             Row::Wanted::kRatioAtLeast, 0.75});
  bench.add({"drain, the slowest by the fastest of these", "", slowest / fastest,
             raw_slowest / raw_fastest, "the same of " + raw.name});
  chart.lines = {own, ordered, raw};
  bench.chart = chart;
}

}  // namespace lictor::bench
