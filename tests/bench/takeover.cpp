// The time from the death of the leader's daemon to the next start of its job, on the other host:
// two daemons on this machine, which lead in turn. Beside it, Consul's own time: a session releases
// a lock and ends, and another one, which watched it, gets it.

#include <signal.h>

#include <thread>

#include <nlohmann/json.hpp>

#include "bench.h"
#include "journal.h"

namespace lictor::bench {
namespace {

using nlohmann::json;

std::string new_session(live::Kv& kv) {
  return kv.request("PUT", "/v1/session/create", R"({"Name": "raw takeover", "TTL": "60s"})")
      .json()
      .at("ID");
}

bool acquire(live::Kv& kv, const std::string& session) {
  return kv.request("PUT", "/v1/kv/raw/takeover?acquire=" + session, "me").body == "true";
}

// Waits as `consul lock` does, without its pauses.
double raw_takeover(const live::ConsulAgent& consul) {
  live::Kv holder{consul.address()}, waiter{consul.address()};
  const std::string held = new_session(holder), next = new_session(waiter);
  require(acquire(holder, held), "the raw lock is held by somebody");
  const std::uint64_t index = holder.get("raw/takeover")->modify_index;
  std::int64_t taken_ns = 0;
  std::thread waiting{[&] {
    static_cast<void>(
        waiter.request("GET", "/v1/kv/raw/takeover?wait=30s&index=" + std::to_string(index)));
    if (acquire(waiter, next)) taken_ns = live::monotonic_ns();
  }};
  std::this_thread::sleep_for(30ms);  // the query is there
  const std::int64_t begin_ns = live::monotonic_ns();
  static_cast<void>(holder.request("PUT", "/v1/kv/raw/takeover?release=" + held));
  static_cast<void>(holder.request("PUT", "/v1/session/destroy/" + held));
  waiting.join();
  require(taken_ns != 0, "the raw lock was not taken over");
  static_cast<void>(waiter.request("PUT", "/v1/kv/raw/takeover?release=" + next));
  static_cast<void>(waiter.request("PUT", "/v1/session/destroy/" + next));
  return ms_between(begin_ns, taken_ns);
}

// Two daemons; each that died is started again, and stands by.
class Pair {
 public:
  explicit Pair(const live::ConsulAgent& consul) : consul_(consul), kv_(consul.address()) {
    leader_ = start();
    other_ = start();
    stands_by();
  }

  /// Sends `signal` to the leader; returns the milliseconds until its job starts at the other.
  double measure(int signal) {
    const std::string key = task_key(kTasksPrefix, count_), id = "bench-" + std::to_string(count_);
    json record = json::parse(task_record(count_, "Program"));
    record["taskPara"] = {{"sleep_first", 600'000}};
    kv_.put(key, record.dump());
    const live::Journal before{leader_->journal()}, after{other_->journal()};
    require(live::eventually([&] { return before.run(id).has_value(); }), "the job did not start");
    std::this_thread::sleep_for(50ms);  // what the start has left to do is done
    const std::int64_t begin_ns = live::monotonic_ns();
    require(kill(leader_->pid(), signal) == 0, "the leader is gone");
    std::optional<live::Run> run;
    require(live::eventually([&] { return (run = after.run(id, 2)).has_value(); }, 2min),
            "the job did not start again");
    require(live::eventually([&] { return !kv_.has(key); }), "the job did not end");
    leader_ = std::exchange(other_, nullptr);
    other_ = start();
    stands_by();
    return ms_between(begin_ns, run->begin_ns);
  }

 private:
  std::unique_ptr<Worker> start() {
    return std::make_unique<Worker>(consul_, "{}", "bench-" + std::to_string(++count_), false);
  }
  void stands_by() {
    const std::string name = "lictor default bench-" + std::to_string(count_);
    require(live::eventually([&] { return !kv_.sessions(name).empty(); }), "nobody stands by");
    std::this_thread::sleep_for(100ms);  // it watches the leader key
  }

  const live::ConsulAgent& consul_;
  live::Kv kv_;
  std::size_t count_ = 0;
  std::unique_ptr<Worker> leader_, other_;
};

}  // namespace

void measure_takeover(Bench& bench) {
  bench.progress("takeover");
  const auto consul = bench.consul();
  Pair pair{*consul};
  std::vector<double> killed, raw, hung;
  for (std::size_t i = 0; i < bench.sizes().killed; ++i) {
    raw.push_back(raw_takeover(*consul));
    killed.push_back(pair.measure(SIGKILL));
  }
  bench.progress("takeover from a daemon that hangs");
  for (std::size_t i = 0; i < bench.sizes().hung; ++i) hung.push_back(pair.measure(SIGSTOP));
  const Latency of_killed = summary(killed), of_raw = summary(raw), of_hung = summary(hung);
  const std::string against = "Consul: release, destroy, wake-up, acquire";
  bench.add({"takeover, kill -9, median", "ms", of_killed.median_ms, of_raw.median_ms, against,
             Row::Wanted::kAtMost, 1000});
  bench.add({"takeover, kill -9, p99", "ms", of_killed.p99_ms, of_raw.p99_ms, against,
             Row::Wanted::kAtMost, 1000});
  // By default hang_timeout is a third of session_ttl: 5 s.
  bench.add({"takeover, SIGSTOP, median", "ms", of_hung.median_ms, of_raw.median_ms, against,
             Row::Wanted::kAtMost, 6000});
  bench.add({"takeover, SIGSTOP, p99", "ms", of_hung.p99_ms, of_raw.p99_ms, against,
             Row::Wanted::kAtMost, 6000});
}

}  // namespace lictor::bench
