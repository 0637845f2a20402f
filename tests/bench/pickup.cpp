// The time from a task's PUT to the start of its job on an idle daemon, one at a time; each kind in
// turn, so that a noisy moment of the machine meets all of them. Before each, the work that the
// last one left gets time to end: the daemon and Consul should be idle, and the caches as cold as
// they are then.

#include <filesystem>
#include <thread>

#include "bench.h"
#include "journal.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

void become_idle() { std::this_thread::sleep_for(30ms); }

// Writes a task as curl would, on a connection of its own; returns when it began.
std::int64_t put(const live::ConsulAgent& consul, const std::string& key,
                 const std::string& record) {
  become_idle();
  const std::int64_t begin = live::monotonic_ns();
  live::Kv{consul.address()}.put(key, record);
  return begin;
}

// Consul's own part: from before the PUT to the answer of a blocking query, and a claim.
class Floor {
 public:
  explicit Floor(const live::ConsulAgent& consul)
      : consul_(consul), writer_(consul.address()), reader_(consul.address()), lock_(consul) {}

  double measure(std::size_t i) {
    const std::string record = task_record(i, "Noop");
    const std::string key = task_key("raw/pick/", i);
    const std::uint64_t index = writer_.set("raw/pick/", std::to_string(i));  // the folder key
    std::int64_t woken = 0;
    std::thread waiting{[&] {
      static_cast<void>(reader_.request(
          "GET", "/v1/kv/raw/pick/?recurse&wait=30s&index=" + std::to_string(index)));
      woken = live::monotonic_ns();
    }};
    // The query must be there before the write; Consul tells nobody whether it is. put() waits.
    const std::int64_t begin = put(consul_, key, record);
    waiting.join();

    wire::Txn txn;
    txn.verb("check-session", lock_.key()).session(lock_.session());
    txn.verb("cas", key)
        .index(writer_.get(key)->modify_index)
        .value(claimed(record, lock_.session()));
    const std::string claim = std::move(txn).body();
    const std::int64_t claim_begin = live::monotonic_ns();
    const auto answer = writer_.request("PUT", "/v1/txn", claim);
    const std::int64_t claim_end = live::monotonic_ns();
    require(answer.status == 200, "the raw claim was refused");
    writer_.remove(key);
    return ms_between(begin, woken) + ms_between(claim_begin, claim_end);
  }

 private:
  const live::ConsulAgent& consul_;
  live::Kv writer_, reader_;
  RawLock lock_;
};

double pick_up_program(const live::ConsulAgent& consul, const Worker& worker, live::Kv& kv,
                       const std::string& type, std::size_t i) {
  const std::string key = task_key(kTasksPrefix, i) + "-" + type;
  // The journal is a file: looking at it is no work for Consul. It holds this one run, since to
  // read a long one every other moment would take a processor from the program that is to begin.
  const live::Journal journal{worker.journal()};
  std::error_code none_yet;
  std::filesystem::resize_file(journal.file(), 0, none_yet);
  const std::int64_t begin = put(consul, key, task_record(i, type));
  std::optional<live::Run> run;
  const bool began = live::eventually([&] {
    run = journal.run("bench-" + std::to_string(i));
    return run.has_value();
  });
  require(began, "the program was not run");
  require(live::eventually([&] { return !kv.has(key); }), "the task was not finished");
  return ms_between(begin, run->begin_ns);
}

// The same program without lictor.
double spawn_program(const live::TemporaryFolder& folder, std::size_t i) {
  const std::string file = folder.file("journal"), task = "spawned-" + std::to_string(i);
  become_idle();
  const std::int64_t begin = live::monotonic_ns();
  run_program(file, task);
  const auto run = live::Journal{file}.run(task);
  require(run.has_value(), "the program did not note its begin");
  return ms_between(begin, run->begin_ns);
}

// Returns the time until a function in C++ begins; waits for its end.
double pick_up(const live::ConsulAgent& consul, const Worker& worker, live::Kv& kv, std::size_t i) {
  const std::string key = task_key(kTasksPrefix, i) + "-mark";
  const std::uint64_t before = worker.board().runs;
  const std::int64_t begin = put(consul, key, task_record(i, "Mark"));
  worker.wait_for_runs(before + 1);
  const Board::Mark& mark = worker.board().mark[before];
  require(mark.task == static_cast<std::int64_t>(i), "another task was run");
  require(live::eventually([&] { return !kv.has(key); }), "the task was not finished");
  return ms_between(begin, mark.began_ns);
}

}  // namespace

void measure_pickup(Bench& bench) {
  bench.progress("pick-up");
  constexpr std::size_t kWarmUp = 10;
  const auto consul = bench.consul();
  Worker worker{*consul};
  live::Kv kv{consul->address()};
  const live::TemporaryFolder folder;
  Floor floor{*consul};
  std::vector<double> raw, function, program, spawned, spawner;
  for (std::size_t i = 0; i < kWarmUp + bench.sizes().picked_up; ++i) {
    raw.push_back(floor.measure(i));
    function.push_back(pick_up(*consul, worker, kv, i));
    program.push_back(pick_up_program(*consul, worker, kv, "Program", i));
    spawner.push_back(pick_up_program(*consul, worker, kv, "Spawn", i));
    spawned.push_back(spawn_program(folder, i));
    if (i + 1 != kWarmUp) continue;
    for (auto* each : {&raw, &function, &program, &spawned, &spawner}) each->clear();
  }
  worker.stop();
  const std::string against = "Consul: wake-up + claim's transaction";
  const Latency beside = summary(raw), started = summary(function), exec = summary(program);
  bench.add({"pick-up, C++, median", "ms", started.median_ms, beside.median_ms, against,
             Row::Wanted::kRatioAtMost, 1.3});
  bench.add({"pick-up, C++, p99", "ms", started.p99_ms, beside.p99_ms, against,
             Row::Wanted::kRatioAtMost, 3});
  bench.add({"pick-up, exec, median", "ms", exec.median_ms, beside.median_ms, against});
  bench.add({"pick-up, exec, p99", "ms", exec.p99_ms, beside.p99_ms, against});
  bench.add({"pick-up, what exec adds to C++", "ms", exec.median_ms - started.median_ms,
             median(spawned), "posix_spawn of the same program to its begin",
             Row::Wanted::kRatioAtMost, 1.2});
  // Consul and the daemon are still busy with the claim then, whoever starts the program.
  bench.add({"pick-up, what exec adds to C++", "ms", exec.median_ms - started.median_ms,
             median(spawner) - started.median_ms, "what posix_spawn in a C++ executor adds",
             Row::Wanted::kRatioAtMost, 1.2});
}

}  // namespace lictor::bench
