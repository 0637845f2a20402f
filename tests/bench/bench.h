#pragma once

// One part is one function: it measures both sides of its ratios and adds them to the report. The
// parts share tasks, the measured daemon, its notes, and Consul without lictor: the same writes,
// made as cheaply as a program can make them.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "consul_agent.h"
#include "kv.h"
#include "process.h"
#include "support.h"

namespace lictor::bench {

using namespace std::chrono_literals;

/// One line of the table: lictor's figure, and the figure measured beside it in the same run.
struct Row {
  enum class Wanted { kNothing, kRatioAtLeast, kRatioAtMost, kAtMost };

  std::string name;
  std::string unit;
  double lictor = 0;
  std::optional<double> other{};
  std::string against{};  ///< what `other` is
  Wanted wanted = Wanted::kNothing;
  double limit = 0;  ///< of the ratio; of kAtMost, of lictor's own figure

  [[nodiscard]] std::optional<double> ratio() const;
  /// std::nullopt if no limit is wanted.
  [[nodiscard]] std::optional<bool> met() const;
};

/// The measurements of all parts. Not thread safe.
class Report {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }

  [[nodiscard]] std::string table() const;
  /// One document: the machine, and the rows with stable field names.
  [[nodiscard]] std::string json() const;

 private:
  std::vector<Row> rows_;
};

/// The processor, the number of cores, kernel, load, and how long the disk below the temporary
/// folder takes for a sync: Consul waits for one at every write, so a busy disk is seen there
/// first.
[[nodiscard]] std::string machine();

inline constexpr const char* kTasksPrefix = "lictor/default/tasks/";
inline constexpr const char* kLeaderKey = "lictor/default/leader";

[[nodiscard]] double median(std::vector<double> values);
struct Latency {
  double median_ms = 0;
  double p99_ms = 0;
};
[[nodiscard]] Latency summary(std::vector<double> ms);

/// The cost of draining, and its speed.
struct Drained {
  double rate = 0;       ///< tasks/s
  double consul_us = 0;  ///< processor time a task
  double daemon_us = 0;  ///< lictor's; of raw transactions nothing
};

/// Fails the whole run: a figure from a failed measurement is worth nothing.
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
/// That time as a percentage of a core during `span`.
[[nodiscard]] double core_percent(std::int64_t cpu_ns, std::chrono::milliseconds span);
[[nodiscard]] double ms_between(std::int64_t from_ns, std::int64_t until_ns);
/// Resident memory of a process, and the memory that its children do not share with it.
[[nodiscard]] std::size_t resident_bytes(pid_t pid);

/// Memory shared with the daemon: the runs of its C++ executors.
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
/// and "Program", which runs job_recorder.
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
  /// Waits until nothing is left below the tasks' prefix; asks Consul only at the end.
  void wait_until_drained(live::Kv& kv, const std::string& last_key) const;
  /// Stops as a service manager does it, so that the next one leads at once.
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

/// A lock of one's own, which fences the raw writes as lictor's is fenced.
class RawLock {
 public:
  explicit RawLock(const live::ConsulAgent& consul);
  ~RawLock();
  RawLock(const RawLock&) = delete;
  RawLock& operator=(const RawLock&) = delete;

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& session() const { return session_; }

 private:
  live::Kv kv_;
  std::string key_ = "raw/leader";
  std::string session_;
};

/// `record` as lictor's claim of it would be written.
[[nodiscard]] std::string claimed(std::string record, const std::string& session);
/// The ModifyIndex that a transaction gave to its last write. Throws if it was refused.
[[nodiscard]] std::uint64_t written_index(const live::HttpAnswer& answer);

/// The prefix of the raw measurements' tasks.
inline constexpr const char* kRawPrefix = "raw/tasks/";

struct RawTask {
  std::string key;
  std::uint64_t index = 0;
};
[[nodiscard]] std::vector<RawTask> raw_tasks(const live::ConsulAgent& consul,
                                             const std::string& prefix);
/// Runs `part` in each of so many threads, each with an open connection. Returns seconds.
[[nodiscard]] double in_parallel(const live::ConsulAgent& consul, std::size_t connections,
                                 const std::function<void(live::Kv&)>& part);
/// Carries out the bodies, on so many connections at once. Returns seconds.
[[nodiscard]] double send_all(const live::ConsulAgent& consul,
                              const std::vector<std::string>& bodies, std::size_t connections);

/// The number of operations that this Consul takes in a transaction.
[[nodiscard]] std::size_t operations_taken(const live::ConsulAgent& consul);
/// `count` tasks are claimed (cas and a check-session, as many as a transaction takes) and then
/// deleted (delete-cas and a check-session). Loads them first.
[[nodiscard]] Drained raw_drain(const live::ConsulAgent& consul, std::size_t count,
                                std::size_t connections);
/// Tasks a second on one connection, one after the other: check-session, cas of the next,
/// delete-cas of the one before.
[[nodiscard]] double raw_single_rate(const live::ConsulAgent& consul, std::size_t count);
/// Tasks a second of the loop that one writes first: list; then for each task, in order, one PUT
/// with cas, the (empty) job, DELETE, and a renewal of its session.
[[nodiscard]] double plain_loop_rate(const live::ConsulAgent& consul, std::size_t count);

/// The sizes of measurements; the defaults are those that the wanted figures are meant for.
struct Sizes {
  bool fresh_consul = true;  ///< for each measurement; else one for all, emptied in between
  std::size_t runs = 3;      ///< interleaved, of which the median counts
  std::vector<std::size_t> connections{1, 2, 4, 16};  ///< of the raw side; the best counts
  std::size_t drained = 20'000;
  std::size_t drained_singly = 2'000;
  std::size_t picked_up = 200;
  std::size_t programs = 3'000;
  std::size_t due = 10'000;
  std::vector<std::chrono::milliseconds> preload{1s, 5s};
  std::size_t backlog = 100'000;
  std::size_t backlog_picked_up = 100;
  std::chrono::milliseconds idle = 20s;
  std::size_t produced = 20'000;
  std::size_t killed = 50, hung = 5;
  std::vector<std::size_t> daemons{1, 2, 4, 8};
  std::chrono::seconds worked = 15s;
};

class Bench {
 public:
  Bench(Sizes sizes, Report& report) : sizes_(std::move(sizes)), report_(report) {}

  [[nodiscard]] const Sizes& sizes() const { return sizes_; }
  void add(Row row) { report_.add(std::move(row)); }
  /// Adds a figure without a counterpart, which should be `limit` at most.
  void add_at_most(std::string name, std::string unit, double figure, double limit) {
    add({std::move(name), std::move(unit), figure, {}, {}, Row::Wanted::kAtMost, limit});
  }
  /// Prints to standard error which measurement runs now.
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
void measure_due(Bench& bench);
void measure_backlog(Bench& bench);
void measure_producers(Bench& bench);
void measure_takeover(Bench& bench);
void measure_scale_out(Bench& bench);

/// Runs from the resumption of a paused queue of `count` no-op tasks until none is left. `queue`:
/// its settings, JSON text. Throws unless every task was run once.
[[nodiscard]] Drained drain(const live::ConsulAgent& consul, std::size_t count,
                            const std::string& queue, const std::string& type = "Noop");

using Runs = std::vector<Drained>;
/// The median of one figure of the runs.
[[nodiscard]] double median_of(const Runs& runs, double Drained::*figure);

}  // namespace lictor::bench
