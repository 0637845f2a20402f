// Producers write all the time: does lictor keep up, and what does it cost Consul beyond the cost
// of the writes and the finishes?

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "bench.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

constexpr std::size_t kConnections = 16;

// Single PUTs at an even pace.
class Producers {
 public:
  Producers(const live::ConsulAgent& consul, const std::string& prefix, std::size_t a_second,
            std::size_t count)
      : begin_(std::chrono::steady_clock::now()) {
    for (std::size_t i = 0; i < kConnections; ++i) next_[i] = i;
    for (std::size_t first = 0; first < kConnections; ++first) {
      threads_.push_back(std::async(std::launch::async, [=, this, &consul] {
        live::Kv kv{consul.address()};
        for (std::size_t i = first; i < count; i += kConnections) {
          std::this_thread::sleep_until(begin_ + i * 1'000'000'000ns / a_second);
          kv.put(task_key(prefix, i), task_record(i, "Noop"));
          next_[first] = i + kConnections;
        }
      }));
    }
  }
  /// Whether all tasks before this one are written.
  [[nodiscard]] std::size_t written() const {
    std::size_t least = next_[0];
    for (std::size_t i = 1; i < kConnections; ++i) least = std::min(least, next_[i].load());
    return least;
  }
  void wait() {
    for (auto& thread : threads_) thread.get();
  }

 private:
  std::chrono::steady_clock::time_point begin_;
  std::array<std::atomic<std::size_t>, kConnections> next_{};  ///< of each connection
  std::vector<std::future<void>> threads_;
};

struct Cost {
  double consul_us = 0;  ///< of processor time, a task
  double daemon_us = 0;
  double written_a_second = 0;
  double left = 0;  ///< when the last one had been written
};

double us(std::int64_t ns, std::size_t count) {
  return static_cast<double>(ns) / 1e3 / static_cast<double>(count);
}

Cost with_lictor(const live::ConsulAgent& consul, std::size_t a_second, std::size_t count) {
  Worker worker{consul, R"({"concurrency": 64})"};
  live::Kv kv{consul.address()};
  const std::int64_t consul_before = cpu_ns(consul.pid());
  const std::int64_t daemon_before = cpu_ns(worker.pid());
  const std::int64_t begin = live::monotonic_ns();
  Producers producers{consul, kTasksPrefix, a_second, count};
  producers.wait();
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  const std::uint64_t runs = worker.board().runs;
  worker.wait_for_runs(count);
  worker.wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
  Cost cost;
  cost.consul_us = us(cpu_ns(consul.pid()) - consul_before, count);
  cost.daemon_us = us(cpu_ns(worker.pid()) - daemon_before, count);
  cost.written_a_second = static_cast<double>(count) / seconds;
  cost.left = static_cast<double>(count - runs);
  require(worker.board().runs == count, "not every task was run once");
  worker.stop();
  return cost;
}

// Sends the same PUTs, and close behind them, on one connection, transactions that claim 31 of them
// and delete the 31 before: nobody has to ask Consul for the written tasks.
Cost by_themselves(const live::ConsulAgent& consul, std::size_t a_second, std::size_t count) {
  constexpr std::size_t kBatch = 31;
  const RawLock lock{consul};
  live::Kv kv{consul.address()};
  std::vector<std::string> claims;
  for (std::size_t i = 0; i < count; ++i) {
    claims.push_back(claimed(task_record(i, "Noop"), lock.session()));
  }
  const std::int64_t before = cpu_ns(consul.pid());
  const std::int64_t begin = live::monotonic_ns();
  Producers producers{consul, "raw/tasks/", a_second, count};
  std::uint64_t index = 0;
  for (std::size_t at = 0; at < count + kBatch; at += kBatch) {
    const std::size_t claimable = std::min(at + kBatch, count);
    require(live::eventually([&] { return producers.written() >= claimable; }),
            "the producers do not get on");
    wire::Txn txn;
    txn.verb("check-session", lock.key()).session(lock.session());
    for (std::size_t i = at < kBatch ? 0 : at - kBatch; i < std::min(at, count); ++i) {
      txn.verb("delete-cas", task_key("raw/tasks/", i)).index(index);
    }
    // `set` for `cas`: the same write, without asking for the index first.
    for (std::size_t i = at; i < std::min(at + kBatch, count); ++i) {
      txn.verb("set", task_key("raw/tasks/", i)).value(claims[i]);
    }
    index = written_index(kv.request("PUT", "/v1/txn", std::move(txn).body()));
  }
  producers.wait();
  Cost cost;
  cost.consul_us = us(cpu_ns(consul.pid()) - before, count);
  cost.written_a_second =
      static_cast<double>(count) / live::seconds_between(begin, live::monotonic_ns());
  return cost;
}

}  // namespace

void measure_write_load(Bench& bench) {
  const Sizes& sizes = bench.sizes();
  const auto tasks_in = [&](std::chrono::milliseconds span) {
    return sizes.writes_a_second * static_cast<std::size_t>(span.count()) / 1'000;
  };
  bench.progress("writes: by themselves");
  // A third of the time is enough for a cost per task.
  const auto raw_span = std::max<std::chrono::milliseconds>(sizes.write_load / 3, 500ms);
  const Cost raw = by_themselves(*bench.consul(), sizes.writes_a_second, tasks_in(raw_span));
  bench.progress("writes: with lictor");
  const auto consul = bench.consul();
  const Cost own = with_lictor(*consul, sizes.writes_a_second, tasks_in(sizes.write_load));
  const std::string name = std::to_string(sizes.writes_a_second) + " writes/s: ";
  // Costs at another pace are not comparable: this row shows a machine that is too busy.
  bench.add({name + "written", "tasks/s", own.written_a_second, raw.written_a_second,
             "the producers of the other side"});
  bench.add_at_most(name + "not yet run after the last write", "tasks", own.left,
                    static_cast<double>(sizes.writes_a_second) / 10);
  bench.add({name + "Consul's processor time a task", "us", own.consul_us, raw.consul_us,
             "the same PUTs, and 31 set + 31 delete-cas a transaction", Row::Wanted::kRatioAtMost,
             1.5});
  bench.add({name + "lictor's processor time a task", "us", own.daemon_us});
}

}  // namespace lictor::bench
