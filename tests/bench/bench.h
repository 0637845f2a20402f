#pragma once

// One part is one function: it measures both sides of its ratios and adds them to the report.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "consul_agent.h"
#include "report.h"
#include "site.h"

namespace lictor::bench {

using namespace std::chrono_literals;

/// How much is measured: by default what the wanted figures are meant for.
struct Sizes {
  bool fresh_consul = true;  ///< for each measurement; else one for all, emptied in between
  std::size_t runs = 3;      ///< interleaved, of which the median counts
  std::vector<std::size_t> connections{1, 2, 4, 16};  ///< of the raw side; the best counts
  std::size_t drained = 20'000;
  std::size_t drained_singly = 2'000;
  std::size_t picked_up = 200;
  std::size_t programs = 3'000;
  std::size_t scripts = 200;
  std::size_t due = 10'000;
  std::vector<std::chrono::milliseconds> preload{1s, 5s};
  std::size_t backlog = 100'000;
  std::size_t backlog_picked_up = 100;
  std::chrono::milliseconds idle = 20s;
  std::size_t produced = 20'000;
  std::chrono::milliseconds write_load = 60s;
  std::size_t writes_a_second = 1'000;
  std::size_t killed = 50, hung = 5;
  std::size_t schedules = 10'000, ticks = 1'000;
  std::vector<std::size_t> scale{1'000, 10'000, 100'000};
  std::vector<std::size_t> daemons{1, 2, 4, 8};
  std::chrono::seconds worked = 15s;
};

class Bench {
 public:
  Bench(Sizes sizes, Report& report) : sizes_(std::move(sizes)), report_(report) {}

  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  void add(Row row) { report_.add(std::move(row)); }
  /// Adds a figure that is measured beside nothing, and is to be `limit` at most.
  void add_at_most(std::string name, std::string unit, double figure, double limit) {
    add({std::move(name), std::move(unit), figure, {}, {}, Row::Wanted::kAtMost, limit});
  }
  /// Prints to standard error what is measured now.
  static void progress(const std::string& what);

  /// A single server, its data on disk, raft_multiplier 1, with nothing in its KV.
  [[nodiscard]] std::shared_ptr<live::ConsulAgent> consul();
  /// Calls `measure` with such a Consul.
  template <class Measure>
  [[nodiscard]] auto on_consul(const Measure& measure) {
    const auto agent = consul();
    return measure(std::as_const(*agent));
  }

 private:
  Sizes sizes_;
  Report& report_;
  std::shared_ptr<live::ConsulAgent> shared_;
};

void measure_drain(Bench& bench);
void measure_pickup(Bench& bench);
void measure_programs(Bench& bench);
void measure_workers(Bench& bench);
void measure_due(Bench& bench);
void measure_backlog(Bench& bench);
void measure_producers(Bench& bench);
void measure_schedules(Bench& bench);
void measure_takeover(Bench& bench);
void measure_write_load(Bench& bench);
void measure_scale(Bench& bench);
void measure_scale_out(Bench& bench);

/// From the resumption of a paused queue of `count` no-op tasks until none is left.
/// `queue`: its settings, JSON text. Throws unless every task was run once.
[[nodiscard]] Drained drain(const live::ConsulAgent& consul, std::size_t count,
                            const std::string& queue, const std::string& type = "Noop");

/// The same of a daemon that is up and whose queue is paused.
[[nodiscard]] Drained drain_waiting(const live::ConsulAgent& consul, const Worker& worker,
                                    std::size_t count);

/// From a task's PUT, on an idle daemon, to the begin of a function in C++; waits for its end.
[[nodiscard]] double pick_up(const live::ConsulAgent& consul, const Worker& worker, live::Kv& kv,
                             std::size_t i);

using Runs = std::vector<Drained>;
/// The median of one figure of the runs.
[[nodiscard]] double median_of(const Runs& runs, double Drained::*figure);

}  // namespace lictor::bench
