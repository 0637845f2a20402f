#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "consul_agent.h"
#include "kv.h"
#include "process.h"
#include "support.h"

namespace lictor::bench {

/// The record of a no-op task of about 200 bytes; `i` gives it its place in the order.
[[nodiscard]] std::string task_record(std::size_t i, const std::string& type);

/// Writes `count` tasks below `prefix` in transactions of 64.
void load(live::Kv& kv, const std::string& prefix, std::size_t count, const std::string& type);

/// Seconds that the plain loop takes for `count` waiting tasks: list; then for each task, in order,
/// one PUT with cas, the (empty) job, DELETE, and a renewal of its session. `fresh`: each request
/// on a connection of its own.
[[nodiscard]] double plain_loop(const live::ConsulAgent& consul, std::size_t count, bool fresh);

/// This program as a daemon with executors in C++: "Noop", and "Mark", which notes when it began.
class Worker {
 public:
  /// Returns when it leads. `queue` are the queue's settings as JSON text.
  Worker(const live::ConsulAgent& consul, const std::string& queue);

  /// When Mark tasks began, CLOCK_MONOTONIC, in the order of their begin.
  [[nodiscard]] std::vector<std::int64_t> marks() const;
  [[nodiscard]] std::string journal() const { return folder_.file("journal"); }

 private:
  live::TemporaryFolder folder_;
  std::unique_ptr<live::Process> process_;
};
[[nodiscard]] int run_worker(int argc, char** argv);

/// Seconds from the moment that a paused queue of `count` no-op tasks is resumed until none is
/// left.
[[nodiscard]] double drain(const live::ConsulAgent& consul, std::size_t count,
                           const std::string& queue);

struct Latency {
  double median_ms = 0;
  double p99_ms = 0;
};
[[nodiscard]] Latency summary(std::vector<double> ms);
/// From before the PUT, on a new connection as curl makes it, to the begin of the job.
[[nodiscard]] Latency pickup(const live::ConsulAgent& consul, std::size_t count, bool exec);
/// Consul's own part: from before the PUT to the answer of a blocking query, and a claim's
/// transaction.
[[nodiscard]] Latency consul_wakeup_and_claim(const live::ConsulAgent& consul, std::size_t count);

}  // namespace lictor::bench
