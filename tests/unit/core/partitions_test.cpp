// One queue in several partitions: who leads each, and what becomes of tasks whose partition moves.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cluster.h"
#include "core/partition.h"
#include "simple_costs.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::core::test;

namespace {

constexpr std::uint32_t kCount = 4;

QueueOptions in_four(const std::string& node, std::uint32_t concurrency = 4) {
  QueueOptions options = options_of(node);
  options.partitions = kCount;
  options.partitions_index = 7;  // there is such a key; what it says, the cluster reads
  options.concurrency = concurrency;
  return options;
}

// Two hosts and four partitions. What must never happen is checked at the end: two jobs of one key.
struct Hosts {
  Hosts() {
    cluster.store.make_partitions(kCount);
    cluster.exclusive = false;
    cluster.plan = [this](const Task& task) {
      begun.push_back(task.id);
      for (const auto& daemon : cluster.daemons()) {
        for (const auto& [id, job] : daemon->jobs) {
          const bool beside = !task.serial_key.empty() && job.task->serial_key == task.serial_key;
          if (beside) cluster.violation(task.key + " runs beside " + job.task->key);
        }
      }
      JobPlan job;
      job.after = runs_for;
      return job;
    };
  }
  ~Hosts() {
    const auto& found = cluster.violations();
    CHECK_MESSAGE(found.empty(), (found.empty() ? std::string{} : found.front()));
  }

  void put(int first, int last, const std::string& serial_key = {}) {
    for (int i = first; i <= last; ++i) {
      Task& task = cluster.make(std::to_string(i));
      task.serial_key = serial_key;
      task.task_time = cluster.wall();
      cluster.store.put(task);
      cluster.run_for(2ms);
    }
  }
  [[nodiscard]] bool all_led() {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (cluster.leader(i) == nullptr) return false;
    }
    return true;
  }
  [[nodiscard]] bool idle() { return cluster.store.task_keys().empty(); }
  [[nodiscard]] std::size_t led_by(const Daemon& daemon) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) count += cluster.leader(i) == &daemon ? 1 : 0;
    return count;
  }

  Cluster cluster;
  Duration runs_for = 10ms;
  std::vector<std::string> begun;
};

}  // namespace

TEST_SUITE_BEGIN("core");

TEST_CASE("one host leads all partitions, and runs the tasks of all in their order") {
  Hosts hosts;
  hosts.cluster.add(in_four("a", 1));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.put(1, 20);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
  std::vector<std::string> expected;
  for (int i = 1; i <= 20; ++i) expected.push_back(std::to_string(i));
  CHECK(hosts.begun == expected);
}

TEST_CASE("each partition is fenced by its own lock") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.put(1, 40);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
  std::set<std::uint32_t> fenced;
  for (const Commit& commit : all<Commit>(a)) {
    CHECK(commit.partition_count == kCount);
    CHECK(commit.count_index == hosts.cluster.store.partitions_index());
    for (const Op& op : commit.ops) {
      const auto* restamp = std::get_if<RestampOp>(&op);
      if (restamp == nullptr) continue;
      const std::uint32_t of = partition_of(restamp->key.substr(kTasks.size()), kCount);
      CHECK(std::count(commit.partitions.begin(), commit.partitions.end(), of) == 1);
      fenced.insert(of);
    }
  }
  CHECK(fenced.size() == kCount);
}

TEST_CASE("a lock that is lost takes its partition alone") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.runs_for = 1h;
  hosts.put(1, 4);
  hosts.cluster.run_for(100ms);
  std::map<std::uint32_t, std::size_t> before;
  for (const auto& [id, job] : a.jobs) ++before[job.partition];
  hosts.cluster.store.remove_leader_key();  // that of partition 0
  hosts.cluster.run_for(500ms);
  std::map<std::uint32_t, std::size_t> after;
  for (const auto& [id, job] : a.jobs) {
    if (!job.told_to_stop) ++after[job.partition];
  }
  before.erase(0);
  after.erase(0);
  CHECK(before == after);
  CHECK(count(a, Fact::Kind::kLeaseLost) == 1);
}

TEST_CASE("jobs that may outlive the lease go on when their partition is lost") {
  Hosts hosts;
  QueueOptions options = in_four("a", 12);
  options.any_type->on_lease_lost = OnLeaseLost::kFinish;
  Daemon& a = hosts.cluster.add(options);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.runs_for = 1h;
  hosts.put(1, 12);
  hosts.cluster.run_for(100ms);
  const auto of_first = std::find_if(a.jobs.begin(), a.jobs.end(),
                                     [](const auto& job) { return job.second.partition == 0; });
  REQUIRE(of_first != a.jobs.end());
  const std::string key = of_first->second.task->key;
  hosts.cluster.unguarded_until = hosts.cluster.now + 1h;  // another may run it beside
  hosts.cluster.store.remove_leader_key();
  REQUIRE(hosts.cluster.run_until([&] { return count(a, Fact::Kind::kLeaseLost) == 1; }, 1s));
  CHECK(a.queue->state_text(key) == "foreign");
  CHECK_FALSE(of_first->second.told_to_stop);
}

TEST_CASE("a partition that is lost while a claimed task of it is read again is another's") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.cluster.run_for(100ms);
  int id = 1;
  while (partition_of(std::to_string(id), kCount) != 0) ++id;
  const std::string key = std::string{kTasks} + std::to_string(id);
  bool is_claimed = false;
  hosts.cluster.fault = [&](const Daemon&, const Effect& effect) {
    Fault fault;
    if (claims(effect, key)) {
      fault.back = 300ms;
      is_claimed = true;
    }
    fault.lose_request = is_claimed && std::holds_alternative<FetchTasks>(effect);
    return fault;
  };
  hosts.put(id, id);
  hosts.cluster.run_for(50ms);
  hosts.cluster.store.remove(key);
  hosts.cluster.run_for(50ms);
  hosts.cluster.put(std::to_string(id), with_record("another record"));
  REQUIRE(hosts.cluster.run_until([&] { return a.queue->state_text(key) == "checking"; }, 1s));
  hosts.cluster.store.remove_leader_key();
  REQUIRE(hosts.cluster.run_until([&] { return count(a, Fact::Kind::kLeaseLost) == 1; }, 1s));
  CHECK(a.queue->state_text(key) == "foreign");
  hosts.cluster.heal();
  CHECK(hosts.cluster.run_until([&] { return hosts.idle(); }, 2min));
  CHECK(hosts.begun.size() == 1);
}

TEST_CASE("one request proves all partitions, and nothing else is asked while nothing happens") {
  Hosts hosts;
  QueueOptions options = in_four("a");
  options.session_ttl = 10min;  // it outlives the leases
  Daemon& a = hosts.cluster.add(options);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.cluster.run_for(1min);
  a.log.clear();
  hosts.cluster.run_for(1min);
  const Duration span = a.options.proof_interval();
  std::vector<std::uint32_t> proved;  // by the lock of which partition
  for (const ReadLeader& read : all<ReadLeader>(a)) {
    if (read.consistent) proved.push_back(read.partition.number);
  }
  CHECK(proved.size() >= static_cast<std::size_t>(60s / span - 1));
  CHECK(proved.size() <= static_cast<std::size_t>(60s / span + 1));
  CHECK(std::set(proved.begin(), proved.end()).size() == kCount);  // each in its turn
  CHECK(hosts.led_by(a) == kCount);
  // Without an answer every lease runs out.
  hosts.cluster.spoil({.lose_request = true}, [](const Daemon&, const Effect&) { return true; });
  hosts.cluster.run_for(a.options.lease_span() + 1s);
  CHECK(count(a, Fact::Kind::kLeaseExpired) == kCount);
  hosts.cluster.heal();
  hosts.cluster.run_for(5s);
  CHECK(count(a, Fact::Kind::kLeaseRegained) == kCount);
}

TEST_CASE("one host proves 256 partitions, and runs their tasks, whatever a transaction takes") {
  for (const std::size_t most : {limits::kLeastOperations, limits::kMostOperations}) {
    CAPTURE(most);
    Hosts hosts;
    hosts.cluster.store.make_partitions(kMostPartitions);
    hosts.cluster.store.most_operations = most;
    QueueOptions options = in_four("a", 64);
    options.partitions = kMostPartitions;
    Daemon& a = hosts.cluster.add(options);
    const auto holds_all = [&] {
      for (std::uint32_t i = 0; i < kMostPartitions; ++i) {
        if (!a.queue->holds_lock(i)) return false;
      }
      return true;
    };
    REQUIRE(hosts.cluster.run_until(holds_all, 5s));
    hosts.cluster.run_for(1min);
    CHECK(count(a, Fact::Kind::kLeaseExpired) == 0);
    CHECK(count(a, Fact::Kind::kStoreTrouble) == 0);
    hosts.put(1, 600);
    REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 1min));
    CHECK(hosts.begun.size() == 600);
    for (const Commit& commit : all<Commit>(a)) {
      CHECK(cost_of(commit).operations <= limits::kMostOperations);
    }
  }
}

TEST_CASE("with its session every lock is lost, though one of them is asked for at a time") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.cluster.fault = [](const Daemon&, const Effect& effect) {  // no watch tells
    Fault fault;
    const auto* read = std::get_if<ReadLeader>(&effect);
    fault.lose_reply = read != nullptr && !read->consistent;
    return fault;
  };
  hosts.cluster.run_for(2min);
  hosts.cluster.kill_session();
  hosts.cluster.run_for(a.options.proof_interval());
  CHECK(count(a, Fact::Kind::kLeaseLost) == kCount);
}

TEST_CASE("with another number of partitions no lock is asked for again and again") {
  Hosts hosts;
  QueueOptions options = in_four("a");
  options.partitions = 1;
  options.partitions_index = 0;
  options.only_undivided = true;
  Daemon& a = hosts.cluster.add(options);
  hosts.cluster.run_for(10s);
  CHECK(a.queue->count_changed());
  CHECK(all<AcquireLock>(a).size() <= 3);
}

TEST_CASE(
    "when a host dies, another takes its partitions, and nothing is lost or run twice at once") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  Daemon& b = hosts.cluster.add(in_four("b"));
  hosts.runs_for = 300ms;
  hosts.put(1, 30, "one key");
  hosts.put(31, 60);
  hosts.cluster.crash(a);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 3min));
  CHECK(hosts.led_by(b) == kCount);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 1min));
  for (int i = 1; i <= 60; ++i) {
    CHECK(std::count(hosts.begun.begin(), hosts.begun.end(), std::to_string(i)) >= 1);
  }
}

TEST_CASE("two hosts share the partitions, run each task once, and those of one key in order") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  Daemon& b = hosts.cluster.add(in_four("b"));
  const auto shared = [&] { return hosts.led_by(a) == 2 && hosts.led_by(b) == 2; };
  REQUIRE(hosts.cluster.run_until(shared, 1min));
  hosts.put(1, 40);
  hosts.put(41, 80, "one key");
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 1min));
  CHECK(hosts.begun.size() == 80);
  std::vector<int> of_key;
  for (const std::string& id : hosts.begun) {
    if (std::stoi(id) > 40) of_key.push_back(std::stoi(id));
  }
  CHECK(std::is_sorted(of_key.begin(), of_key.end()));
  CHECK(of_key.size() == 40);
  std::set<const Daemon*> ran;
  for (const Daemon* each : {&a, &b}) {
    if (count(*each, Fact::Kind::kDone) > 0) ran.insert(each);
  }
  CHECK(ran.size() == 2);
}

TEST_CASE("a stop drains every partition, releases every lock, and then ends the session") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.runs_for = 200ms;
  hosts.put(1, 8);
  hosts.cluster.tell(a, StopRequested{});
  REQUIRE(hosts.cluster.run_until([&] { return !a.queue; }, 5s));
  CHECK(all<ReleaseLock>(a).size() == kCount);
  CHECK(all<DestroySession>(a).size() == 1);
  CHECK(a.jobs.empty());
  for (std::uint32_t i = 0; i < kCount; ++i) CHECK(hosts.cluster.store.leader_session(i).empty());
  Daemon& b = hosts.cluster.add(in_four("b"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));  // without a lock-delay
  CHECK(hosts.led_by(b) == kCount);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
}

TEST_CASE("a step-down gives up every partition, and another host takes them") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  Daemon& b = hosts.cluster.add(in_four("b"));
  hosts.put(1, 20);
  hosts.cluster.store.control(false, "please");
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount; }, 5s));
  CHECK(hosts.led_by(a) == 0);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
  CHECK(hosts.begun.size() == 20);
}

TEST_CASE("a host that joins gets its share, one partition after the other, while tasks run") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.cluster.run_for(1min);
  Daemon& b = hosts.cluster.add(in_four("b"));
  std::size_t most_free = 0;
  const auto shared = [&] {
    std::size_t held = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      held += hosts.cluster.store.leader_session(i).empty() ? 0 : 1;
    }
    most_free = std::max(most_free, kCount - held);
    return hosts.led_by(b) == 2;
  };
  for (int i = 1; i <= 300; ++i) {
    hosts.put(i, i, "key " + std::to_string(i % 5));
    static_cast<void>(hosts.cluster.run_until(shared, 100ms));
  }
  CHECK(shared());
  CHECK(hosts.led_by(a) == 2);
  CHECK(most_free <= 1);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 1min));
  CHECK(hosts.begun.size() == 300);
}

TEST_CASE("beside two daemons of one name another host gets its share") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  Daemon& twin = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.cluster.run_for(6min);
  // What one of them loses the other may take.
  for (int i = 0; i < 20 && (hosts.led_by(a) == 0 || hosts.led_by(twin) == 0); ++i) {
    hosts.cluster.store.remove_leader_key();
    hosts.cluster.unguarded_until = Instant::max();
    hosts.cluster.run_for(1min);
  }
  REQUIRE(hosts.led_by(a) != 0);
  REQUIRE(hosts.led_by(twin) != 0);
  hosts.cluster.unguarded_until = hosts.cluster.now;
  hosts.runs_for = 5s;  // each partition that they lead has jobs all the time
  hosts.put(1, 2'000);
  hosts.cluster.run_for(10s);
  Daemon& b = hosts.cluster.add(in_four("b"));
  CHECK(hosts.cluster.run_until([&] { return hosts.led_by(b) == 2; }, 3min));
}

TEST_CASE("a host that is drained gives all away, and gets its share back afterwards") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a", 16));
  Daemon& b = hosts.cluster.add(in_four("b"));
  const auto shared = [&] { return hosts.led_by(a) == 2 && hosts.led_by(b) == 2; };
  REQUIRE(hosts.cluster.run_until(shared, 1min));
  hosts.runs_for = 1h;
  hosts.put(1, 16);
  const auto busy_partitions = [&] {
    std::set<std::uint32_t> partitions;
    for (const auto& [id, job] : a.jobs) partitions.insert(job.partition);
    return partitions.size();
  };
  REQUIRE(hosts.cluster.run_until([&] { return busy_partitions() == 2; }, 10s));
  hosts.cluster.drain(a, true);
  // All at once: with one partition after the other it would be drain_timeout for each.
  hosts.cluster.run_for(100ms);
  const Duration limit = a.options.drain_timeout + a.options.kill_grace + 5s;
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount; }, limit));
  CHECK(a.jobs.empty());
  hosts.cluster.run_for(1min);
  CHECK(hosts.led_by(b) == kCount);
  hosts.cluster.drain(a, false);
  for (auto& daemon : hosts.cluster.daemons()) {
    for (auto& [id, job] : daemon->jobs) job.ends = hosts.cluster.now;
  }
  hosts.runs_for = 10ms;
  CHECK(hosts.cluster.run_until(shared, 10min));
}

TEST_CASE("a fair share is not worth a long job: its partition stays where it runs") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 1s));
  hosts.runs_for = 1h;
  hosts.put(1, 12);
  hosts.cluster.run_for(1s);
  const std::size_t jobs = a.jobs.size();
  Daemon& b = hosts.cluster.add(in_four("b"));
  hosts.cluster.run_for(30min);
  for (const auto& [id, job] : a.jobs) CHECK_FALSE(job.told_to_stop);
  CHECK(a.jobs.size() == jobs);
  CHECK(hosts.led_by(b) <= 2);
  for (auto& [id, job] : a.jobs) job.ends = hosts.cluster.now;
  hosts.runs_for = 10ms;
  CHECK(hosts.cluster.run_until([&] { return hosts.led_by(b) == 2; }, 30min));
}

TEST_SUITE_END();
