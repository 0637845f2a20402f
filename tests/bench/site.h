#pragma once

// What the parts share: tasks, the daemon that is measured, and what it notes down.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "consul_agent.h"
#include "kv.h"
#include "process.h"
#include "support.h"

namespace lictor::bench {

inline constexpr const char* kTasksPrefix = "lictor/default/tasks/";
inline constexpr const char* kLeaderKey = "lictor/default/leader";

[[nodiscard]] double median(std::vector<double> values);
struct Latency {
  double median_ms = 0;
  double p99_ms = 0;
};
[[nodiscard]] Latency summary(std::vector<double> ms);

/// What draining has cost, and how fast it went.
struct Drained {
  double rate = 0;       ///< tasks/s
  double consul_us = 0;  ///< processor time a task
  double daemon_us = 0;  ///< lictor's; of raw transactions nothing
};

/// Fails the whole run: a figure of something that went wrong is worth nothing.
void require(bool condition, const std::string& what);

using cli::task_key;
using cli::task_record;
using MakeRecord = std::function<std::string(std::size_t i)>;
/// Writes `count` tasks below `prefix`, 64 in a transaction, on 4 connections.
void load(const live::ConsulAgent& consul, const std::string& prefix, std::size_t count,
          const MakeRecord& record);
[[nodiscard]] std::int64_t wall_ms();
/// The keys below `prefix`, folder keys aside.
[[nodiscard]] std::vector<std::string> names_below(live::Kv& kv, const std::string& prefix);

/// Processor time of a process and its children so far, in nanoseconds.
[[nodiscard]] std::int64_t cpu_ns(pid_t pid);
/// That time as percent of a core during `span`.
[[nodiscard]] double core_percent(std::int64_t cpu_ns, std::chrono::milliseconds span);
[[nodiscard]] double ms_between(std::int64_t from_ns, std::int64_t until_ns);
/// Resident memory of a process, and what its children have of their own.
[[nodiscard]] std::size_t resident_bytes(pid_t pid);

/// Shared with the daemon: what its C++ executors have run.
struct Board {
  static constexpr std::size_t kMarks = 200'000;
  struct Mark {
    std::int64_t task;      ///< the number at the end of its id
    std::int64_t began_ns;  ///< CLOCK_MONOTONIC
  };
  std::atomic<std::uint64_t> runs;   ///< of all tasks; counted after the mark is written
  std::atomic<std::uint64_t> marks;  ///< taken
  Mark mark[kMarks];                 ///< in the order of their begin, about
};

/// This program as a daemon with executors in C++: "Noop", and "Mark", which notes when it began,
/// and "Spawn", which calls run_program(); and in its configuration "True", which runs /bin/true,
/// and "Program", which runs job_recorder; and the workers "Warm" and "Wide", which do nothing,
/// "WarmPython" and, as the same program a task, "ColdPython".
class Worker {
 public:
  /// `queue`: its settings, JSON text. Returns when it leads, or with `leader` false when it is a
  /// member.
  explicit Worker(const live::ConsulAgent& consul, const std::string& queue = "{}",
                  const std::string& node = "bench-1", bool leader = true);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] const Board& board() const { return *board_; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] std::string journal() const { return folder_.file("journal"); }
  /// When it was started, CLOCK_MONOTONIC.
  [[nodiscard]] std::int64_t started_ns() const { return started_ns_; }
  void wait_for_runs(std::size_t count) const;
  /// Until nothing is left below the tasks' prefix; asks Consul only at the end.
  void wait_until_drained(live::Kv& kv, const std::string& last_key) const;
  /// As a service manager does it, so that the next one leads at once.
  void stop();

 private:
  live::TemporaryFolder folder_;
  Board* board_ = nullptr;
  std::int64_t started_ns_ = 0;
  std::unique_ptr<live::Process> process_;
};
/// Runs job_recorder once with posix_spawn, as one would without lictor, and waits for its end.
void run_program(std::string journal, const std::string& task);
/// The command `lictor` with those executors, for the Worker and for the commands of producers.
[[nodiscard]] int run_lictor(int argc, char** argv);

}  // namespace lictor::bench
