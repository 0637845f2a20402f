// Measures lictor and raw Consul requests in one run.

#include <algorithm>
#include <array>
#include <cstdio>
#include <future>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/try.h"
#include "cli/bench_site.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/process.h"
#include "cli/table.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using Store = client::Store;
using Verb = Store::Op::Verb;

constexpr std::size_t kMostAtOnce = 10'000;  // what prefetch goes up to

struct Measured {
  std::string name;  // stable, for --json
  std::string what;
  const char* unit;
  double lictor = 0;
  double consul = 0;
  bool rate = true;  // more is better
};

double seconds(Instant begin) { return std::chrono::duration<double>(boot_now() - begin).count(); }

void progress(const Client& client, const std::string& what) {
  client.console.progress("measuring: " + what + " ...");
}

// A transaction for each `batch` of the tasks, on `connections` at once.
Result<void> rewrite_all(Store& store, const std::string& prefix, Verb verb, std::size_t batch,
                         std::size_t connections) {
  LICTOR_TRY(const auto listed, store.list(prefix));
  const auto& entries = listed.entries;
  const auto part = [&](std::size_t first) -> Result<void> {
    for (std::size_t at = first * batch; at < entries.size(); at += connections * batch) {
      if (auto on = BenchSite::go_on(); !on) return on;
      std::vector<Store::Change> changes;
      for (std::size_t i = at; i < std::min(at + batch, entries.size()); ++i) {
        Store::Op op{verb, entries[i].key, entries[i].modify_index};
        if (verb == Verb::kCas) op.value = entries[i].value + std::string(200, ' ');  // a claim
        changes.push_back({std::move(op)});
      }
      if (auto done = store.apply(changes); !done) return tl::unexpected(done.error());
    }
    return {};
  };
  std::vector<std::future<Result<void>>> parts;
  for (std::size_t i = 1; i < connections; ++i) parts.push_back(std::async(part, i));
  Result<void> result = part(0);
  for (auto& each : parts) {
    if (auto done = each.get(); !done) result = done;
  }
  return result;
}

// Tasks a second that transactions of the same shape claim and delete, without lictor.
Result<double> raw_rate(const Client& client, const BenchOptions& options, std::size_t batch,
                        std::size_t connections) {
  BenchSite site{client.store, options.consul};
  if (auto loaded = site.load(options.tasks, {}); !loaded) return tl::unexpected(loaded.error());
  double spent = 0;
  for (const Verb verb : {Verb::kCas, Verb::kDeleteCas}) {
    const Instant begin = boot_now();
    auto done = rewrite_all(client.store, site.tasks_prefix(), verb, batch, connections);
    if (!done) return tl::unexpected(done.error());
    spent += seconds(begin);
  }
  return static_cast<double>(options.tasks) / spent;
}

Result<double> drain_rate(const Client& client, const BenchOptions& options,
                          const std::string& settings) {
  BenchSite site{client.store, options.consul};
  if (auto paused = site.pause(true); !paused) return tl::unexpected(paused.error());
  if (auto loaded = site.load(options.tasks, {}); !loaded) return tl::unexpected(loaded.error());
  if (auto started = site.start(settings); !started) return tl::unexpected(started.error());
  const Instant begin = boot_now();
  if (auto resumed = site.pause(false); !resumed) return tl::unexpected(resumed.error());
  if (auto drained = site.wait_until_drained(options.tasks); !drained) {
    return tl::unexpected(drained.error());
  }
  return static_cast<double>(options.tasks) / seconds(begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// From the write of a task to the deletion of its key, in ms, one at a time; by lictor or by raw
// requests.
Result<double> round_trip(const Client& client, const BenchOptions& options, bool by_lictor) {
  constexpr std::size_t kTimes = 50;
  BenchSite site{client.store, options.consul};
  if (by_lictor) {
    if (auto started = site.start("{}"); !started) return tl::unexpected(started.error());
  }
  std::vector<double> ms;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const std::string key = site.key(i);
    const std::string record = task_record(i, "Noop");
    const Instant begin = boot_now();
    const auto created = client.store.create({{key, record}});
    if (!created) return tl::unexpected(created.error());
    for (std::uint64_t index = 0;;) {
      if (auto on = BenchSite::go_on(); !on) return tl::unexpected(on.error());
      LICTOR_TRY(const auto seen, client.store.watch(key, index, 1s));
      if (!seen.entry) break;
      index = seen.index;
      if (by_lictor) continue;
      const Verb verb = seen.entry->value == record ? Verb::kCas : Verb::kDeleteCas;
      const auto done = client.store.apply(
          {{{verb, key, seen.entry->modify_index, verb == Verb::kCas ? record + " " : ""}}});
      if (!done) return tl::unexpected(done.error());
    }
    ms.push_back(seconds(begin) * 1e3);
  }
  return median(std::move(ms));
}

// From the time at which all are due to the last finish in Consul, in ms.
Result<double> due_at_once(const Client& client, const BenchOptions& options) {
  BenchSite site{client.store, options.consul};
  const std::size_t count = std::min(options.tasks, kMostAtOnce);
  if (auto started = site.start(R"({"concurrency":64,"prefetch":)" + std::to_string(count) + "}");
      !started) {
    return tl::unexpected(started.error());
  }
  const Duration ahead = 3s + count * 1ms;
  const WallTime due = std::chrono::ceil<std::chrono::milliseconds>(wall_now() + ahead);
  const Instant begin = boot_now() + (due - wall_now());
  if (auto loaded = site.load(count, due); !loaded) return tl::unexpected(loaded.error());
  if (auto drained = site.wait_until_drained(count); !drained) {
    return tl::unexpected(drained.error());
  }
  return seconds(begin) * 1e3;
}

Result<std::vector<Measured>> measure(const Client& client, const BenchOptions& options) {
  std::vector<Measured> rows;
  const auto both = [&](Measured row, const Result<double>& lictor, double consul) -> Result<void> {
    if (!lictor) return tl::unexpected(lictor.error());
    row.lictor = *lictor;
    row.consul = consul;
    rows.push_back(std::move(row));
    return {};
  };
  progress(client, "raw transactions");
  double best = 0;
  for (const std::size_t connections : {1, 2, 4}) {
    LICTOR_TRY(const auto rate, raw_rate(client, options, Store::kMaxOperations - 1, connections));
    best = std::max(best, rate);
  }
  BenchOptions few = options;  // for the slow measurements: one transaction a task
  few.tasks = options.tasks / 10 + 1;
  const Result<double> single = raw_rate(client, few, 1, 1);
  if (!single) return tl::unexpected(single.error());
  struct Shape {
    const char *name, *what, *settings;
    double raw;
    const BenchOptions& options;
  };
  for (const Shape& shape :
       {Shape{"drain_64", "drain, concurrency 64", R"({"concurrency":64})", best, options},
        Shape{"drain_1_prefetch_64", "drain, concurrency 1, prefetch 64", R"({"prefetch":64})",
              best, options},
        Shape{"drain_1", "drain, concurrency 1", "{}", *single, few}}) {
    progress(client, shape.what);
    auto added = both({shape.name, shape.what, "tasks/s"},
                      drain_rate(client, shape.options, shape.settings), shape.raw);
    if (!added) return tl::unexpected(added.error());
  }
  progress(client, "one task at a time");
  LICTOR_TRY(const auto by_hand, round_trip(client, options, false));
  auto added = both({"round_trip", "one task, from its write to its end", "ms", 0, 0, false},
                    round_trip(client, options, true), by_hand);
  if (!added) return tl::unexpected(added.error());
  progress(client, "due at once");
  const double finish = static_cast<double>(std::min(options.tasks, kMostAtOnce)) / best * 1e3;
  added = both({"due_at_once", "all due at once, to the last one's end", "ms", 0, 0, false},
               due_at_once(client, options), finish);
  if (!added) return tl::unexpected(added.error());
  return rows;
}

std::string number(double value, const char* format) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

Result<int> bench(const Client& client, const BenchOptions& options) {
  catch_signals(SecondSignal::kIgnored);
  const auto rows = measure(client, options);
  client.console.end_progress();
  if (!rows) return tl::unexpected(rows.error());
  Table table{{"MEASURED", "UNIT", "LICTOR", "CONSUL ALONE", "RATIO"}};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Measured& row : *rows) {
    const double ratio = row.lictor / row.consul;
    table.add_row({{row.what},
                   {row.unit},
                   {number(row.lictor, row.rate ? "%.0f" : "%.1f")},
                   {number(row.consul, row.rate ? "%.0f" : "%.1f")},
                   {number(ratio, "%.2f")}});
    list.push_back({{"name", row.name},
                    {"unit", row.unit},
                    {"lictor", row.lictor},
                    {"consul", row.consul},
                    {"ratio", ratio}});
  }
  if (client.json) {
    client.console.print(json_document({{"tasks", options.tasks}, {"measured", list}}));
  } else {
    client.console.print(table.render(client.console.width()));
  }
  return kDone;
}

}  // namespace lictor::cli
