// A queue with partitions: who leads each, and the tasks of partitions that move.

#include <algorithm>
#include <array>

#include "alone.h"
#include "core/partition.h"

namespace lictor::core::test {
namespace {

constexpr std::uint32_t kCount = 4;

QueueOptions in_four(const std::string& node, std::uint32_t concurrency = 4) {
  QueueOptions options = options_of(node);
  options.partitions = kCount;
  options.partitions_index = 7;  // there is such a key; what it says, the cluster reads
  options.concurrency = concurrency;
  return options;
}

// Two hosts and four partitions. The end checks that no two jobs of one key ran.
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
      return JobPlan{.after = runs_for, .error = {}};
    };
  }

  void put(int first, int last, const std::string& serial_key = {}) {
    for (int i = first; i <= last; ++i) {
      cluster.put_and_run(std::to_string(i), 2ms, [&](Task& task) {
        task.serial_key = serial_key;
        task.task_time = cluster.wall();
      });
    }
  }
  [[nodiscard]] bool all_led() {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (cluster.leader(i) == nullptr) return false;
    }
    return true;
  }
  // Adds a daemon that leads all partitions.
  Daemon& add_leader(const QueueOptions& options) {
    Daemon& daemon = cluster.add(options);
    REQUIRE(cluster.run_until([&] { return all_led(); }, 1s));
    return daemon;
  }
  [[nodiscard]] bool idle() { return !cluster.store.has_tasks(); }
  void run_to_the_end(Duration limit, std::size_t jobs) {
    REQUIRE(cluster.run_until([&] { return idle(); }, limit));
    CHECK(begun.size() == jobs);
  }
  [[nodiscard]] std::size_t led_by(const Daemon& daemon) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) count += cluster.leader(i) == &daemon ? 1 : 0;
    return count;
  }

  CheckedCluster cluster;
  Duration runs_for = 10ms;
  std::vector<std::string> begun;
};

TEST_CASE("one host leads all partitions, and runs the tasks of all in their order") {
  Hosts hosts;
  hosts.add_leader(in_four("a", 1));
  hosts.put(1, 20);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
  std::vector<std::string> expected;
  for (int i = 1; i <= 20; ++i) expected.push_back(std::to_string(i));
  CHECK(hosts.begun == expected);
}

TEST_CASE("a lock that is lost takes its partition alone") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  hosts.runs_for = 1h;
  hosts.put(1, 4);
  hosts.cluster.run_for(100ms);
  const std::size_t jobs = a.jobs.size();
  std::map<std::uint32_t, std::size_t> before;
  for (const auto& [id, job] : a.jobs) ++before[job.partition];
  REQUIRE(before[0] != 0);
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
  // Its tasks run again, in its next term.
  CHECK(hosts.cluster.run_until([&] { return a.jobs.size() == jobs; }, 2min));
}

TEST_CASE("jobs that may outlive the lease go on when their partition is lost") {
  Hosts hosts;
  QueueOptions options = in_four("a", 12);
  options.any_type->on_lease_lost = OnLeaseLost::kFinish;
  Daemon& a = hosts.add_leader(options);
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
  Daemon& a = hosts.add_leader(in_four("a"));
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
  hosts.cluster.remove_and_run(key, 50ms);
  hosts.cluster.put(std::to_string(id), with_record("another record"));
  REQUIRE(hosts.cluster.run_until([&] { return a.queue->state_text(key) == "checking"; }, 1s));
  hosts.cluster.store.remove_leader_key();
  REQUIRE(hosts.cluster.run_until([&] { return count(a, Fact::Kind::kLeaseLost) == 1; }, 1s));
  CHECK(a.queue->state_text(key) == "foreign");
  hosts.cluster.heal();
  CHECK(hosts.cluster.run_until([&] { return hosts.idle(); }, 2min));
  CHECK(hosts.begun.size() == 1);
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
    hosts.run_to_the_end(1min, 600);
    const auto costs = hosts.cluster.store.costs();
    for (const Commit& commit : all<Commit>(a)) {
      Cost cost = costs->fence(commit.partition_count, commit.partitions.size());
      for (const Op& op : commit.ops) cost += costs->cost(op);
      CHECK(cost.operations <= limits::kMostOperations);
    }
  }
}

TEST_CASE("with its session every lock is lost, though one of them is asked for at a time") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  hosts.cluster.spoil({.lose_reply = true},
                      [](const Daemon&, const Effect& effect) { return watches_leader(effect); });
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
  options.only_single = true;
  Daemon& a = hosts.cluster.add(options);
  hosts.cluster.run_for(10s);
  CHECK(a.queue->count_changed());
  CHECK(all<AcquireLock>(a).size() <= 3);
}

TEST_CASE("a drain_timeout of 0 hands idle partitions over, and busy ones after a while") {
  Hosts hosts;
  QueueOptions at_once = in_four("a");
  at_once.drain_timeout = 0s;
  Daemon& a = hosts.add_leader(at_once);
  at_once.node = "b";
  Daemon& b = hosts.cluster.add(at_once);
  CHECK(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount / 2; }, 5min));
  CHECK(hosts.led_by(a) == kCount / 2);
}

TEST_CASE("the history of several hosts is pruned by the leader of the first partition alone") {
  Hosts hosts;
  QueueOptions keeps = in_four("a");
  keeps.history = HistoryLimits{5, 0s};
  Daemon& a = hosts.add_leader(keeps);
  keeps.node = "b";
  Daemon& b = hosts.cluster.add(keeps);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount / 2; }, 5min));
  Daemon& first = *hosts.cluster.leader(0);
  Daemon& other = &first == &a ? b : a;
  hosts.put(1, 40);
  hosts.run_to_the_end(10s, 40);
  hosts.cluster.run_for(70s);  // it learns once a minute what the other has finished
  CHECK(hosts.cluster.store.keys("done/").size() == 5);
  hosts.cluster.tell(first, StopRequested{});
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(other) == kCount; }, 1min));
  hosts.cluster.run_for(1min);
  for (const Commit& commit : all<Commit>(other)) {
    for (const Op& op : commit.ops) CHECK_FALSE(std::holds_alternative<PruneOp>(op));
  }
}

TEST_CASE("a lock that a lagging server refused for a dead session is asked for again") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  Daemon& b = hosts.cluster.add(in_four("b"));
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount / 2; }, 5min));
  bool lied = false;
  hosts.cluster.on_effect = [&](const Daemon& daemon, const Effect& e) {
    const auto* lock = std::get_if<AcquireLock>(&e);
    if (&daemon != &a || lock == nullptr || std::exchange(lied, true)) return;
    hosts.cluster.tell(a, LockReplied{lock->request, LockReplied::Answer::kSessionGone, 0, {}});
  };
  hosts.cluster.tell(b, StopRequested{});
  CHECK(hosts.cluster.run_until([&] { return hosts.led_by(a) == kCount; }, 1min));
}

TEST_CASE("a stop drains every partition, releases every lock, and then ends the session") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  hosts.runs_for = 200ms;
  hosts.put(1, 8);
  bool late = false;  // the answers about some locks come later than about others
  hosts.cluster.spoil({.out = 100ms}, [&](const Daemon&, const Effect& e) {
    return std::holds_alternative<ReleaseLock>(e) && std::exchange(late, !late);
  });
  hosts.cluster.tell(a, StopRequested{});
  REQUIRE(hosts.cluster.run_until([&] { return !a.queue; }, 5s));
  CHECK(all<ReleaseLock>(a).size() == kCount);
  CHECK(all<DestroySession>(a).size() == 1);
  CHECK(a.jobs.empty());
  for (std::uint32_t i = 0; i < kCount; ++i) CHECK(hosts.cluster.store.leader_session(i).empty());
  Daemon& b = hosts.add_leader(in_four("b"));  // without a lock-delay
  CHECK(hosts.led_by(b) == kCount);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.idle(); }, 10s));
}

TEST_CASE("news of members wakes nobody in a queue of one partition") {
  Alone a;
  a.cluster.tell(a.daemon, MembersSeen{});
  a.cluster.run_for(1s);
}

TEST_CASE("a step-down gives up every partition, and another host takes them") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  Daemon& b = hosts.cluster.add(in_four("b"));
  hosts.put(1, 20);
  hosts.cluster.store.control(false, "please");
  REQUIRE(hosts.cluster.run_until([&] { return hosts.led_by(b) == kCount; }, 5s));
  CHECK(hosts.led_by(a) == 0);
  hosts.run_to_the_end(10s, 20);
}

TEST_CASE("when a host is lost the others take a share each, and none changes hands afterwards") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
  Daemon& b = hosts.cluster.add(in_four("b"));
  Daemon& c = hosts.cluster.add(in_four("c"));
  hosts.cluster.run_for(10s);
  hosts.cluster.crash(a);
  REQUIRE(hosts.cluster.run_until([&] { return hosts.all_led(); }, 2min));
  const std::size_t taken = count(b, Fact::Kind::kLeading) + count(c, Fact::Kind::kLeading);
  CHECK(hosts.led_by(b) == 2);
  CHECK(hosts.led_by(c) == 2);
  hosts.cluster.run_for(5min);
  CHECK(count(b, Fact::Kind::kLeading) + count(c, Fact::Kind::kLeading) == taken);
}

TEST_CASE("a host that joins gets its share, one partition after the other, while tasks run") {
  Hosts hosts;
  Daemon& a = hosts.add_leader(in_four("a"));
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
  hosts.run_to_the_end(1min, 300);
}

TEST_CASE("beside two daemons of one name another host gets its share") {
  Hosts hosts;
  Daemon& a = hosts.cluster.add(in_four("a"));
  Daemon& twin = hosts.add_leader(in_four("a"));
  hosts.cluster.run_for(6min);
  // A partition that one of them loses the other may take.
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
  Daemon& a = hosts.add_leader(in_four("a"));
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

// Made by another implementation of SipHash (in Python), of which "db7" was compared with
// "openssl mac -macopt size:8 -macopt hexkey:000102030405060708090a0b0c0d0e0f SIPHASH".
TEST_CASE("a task's partition follows from its serialKey or id, on every host and version alike") {
  struct Vector {
    std::string text;
    std::uint64_t hash;
    std::array<std::uint32_t, 4> partitions;  // of 2, 3, 16, 256
  };
  const std::array<Vector, 11> vectors{{
      {"42", 0x20626087b15d6d13, {1, 0, 3, 19}},
      {"db7", 0x1d02c1a5efe79550, {0, 2, 0, 80}},
      {"a", 0x2ba3e8e9a71148ca, {0, 1, 10, 202}},
      {"0123456", 0x11f655cd8ce1b332, {0, 1, 2, 50}},
      {"01234567", 0xbf01f08d01c1cb98, {0, 0, 8, 152}},
      {"order/42", 0xbd30a9d38ead801e, {0, 1, 14, 30}},
      {"schedule/nightly", 0x964fbb89854aa4e8, {0, 1, 8, 232}},
      {"nightly@2026-11-24T01:30:00Z", 0x65099dfa01230a39, {1, 2, 9, 57}},
      {"m\u00fcller", 0x359f1b9977481792, {0, 2, 2, 146}},
      {"\U0001f600", 0x4445257f49b3e86d, {1, 0, 13, 109}},
      {std::string(300, 'x'), 0x11a8091bcf4bc254, {0, 1, 4, 84}},
  }};
  for (const Vector& vector : vectors) {
    CAPTURE(vector.text);
    CHECK(siphash<2, 4>(kPartitionKey, vector.text) == vector.hash);
    CHECK(partition_of(vector.text, 0) == 0);
    CHECK(partition_of(vector.text, 1) == 0);
    CHECK(partition_of(vector.text, 2) == vector.partitions[0]);
    CHECK(partition_of(vector.text, 3) == vector.partitions[1]);
    CHECK(partition_of(vector.text, 16) == vector.partitions[2]);
    CHECK(partition_of(vector.text, 256) == vector.partitions[3]);
  }
  CHECK(partition_of("", "42", 256) == 19);
  static_assert(partition_of("db7", "42", 256) == 80);  // a serialKey goes before the id
  // The published vectors (Aumasson and Bernstein, appendix A, and their vectors.h).
  CHECK(siphash<2, 4>(kPartitionKey, "") == 0x726fdb47dd0e0e31);
  CHECK(siphash<2, 4>(kPartitionKey, std::string_view{"\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16",
                                                      15}) == 0xa129ca6149be45e5);
}

TEST_CASE("one request proves all partitions, and nothing else is asked while nothing happens") {
  Hosts hosts;
  QueueOptions options = in_four("a");
  options.session_ttl = 10min;  // it outlives the leases
  Daemon& a = hosts.add_leader(options);
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

}  // namespace
}  // namespace lictor::core::test
