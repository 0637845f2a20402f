// Three servers of which two die, so that Consul answers that it has no leader and takes no writes,
// for longer than the lease: jobs are stopped, and the writes that give them back are in doubt.

#include "hosts.h"
#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

constexpr int kServers = 3;
constexpr int kSerialKeys = 3;

// One queue that runs one task after the other, and one that runs several.
class Cluster {
 public:
  Cluster() : servers_(hosts_, kServers) {
    // Two of each serialKey of the queue that runs several.
    for (int i = 0; i < 2 * kSerialKeys; ++i) {
      put("default", i, i == 0, json::object());
      put("wide", i, i < kSerialKeys, {{"serialKey", "key" + std::to_string(i % kSerialKeys)}});
    }
  }
  ~Cluster() {
    keep_for_failure("journal", read_text(journal_.file()));
    keep_for_failure("journal of the wide queue", read_text(wide_journal_.file()));
  }

  [[nodiscard]] std::unique_ptr<LictorDaemon> daemon(int host) const {
    DaemonSettings settings = servers_.settings_on(host);
    settings.queue["executors"]["*"] = {
        {"exec", {LICTOR_JOB_RECORDER, journal_.file(), settings.node, "queue"}}};
    settings.more_queues.push_back(
        {{"name", "wide"},
         {"concurrency", 8},
         {"executors",
          {{"*",
            {{"exec", {LICTOR_JOB_RECORDER, wide_journal_.file(), settings.node, "task"}}}}}}});
    return std::make_unique<LictorDaemon>(settings);
  }
  [[nodiscard]] std::size_t running() const {
    std::size_t count = 0;
    for (const Journal* journal : {&journal_, &wide_journal_}) {
      for (const Run& run : journal->runs()) count += is_alive(run.pid) ? 1 : 0;
    }
    return count;
  }
  void lose_quorum() { servers_.lose_quorum(); }
  void regain_quorum() { servers_.regain_quorum(); }
  [[nodiscard]] bool ends() const {
    return eventually([&] {
      return servers_.ask([](Kv& kv) {
        return kv.list("lictor/default/tasks/").empty() && kv.list("lictor/wide/tasks/").empty();
      });
    });
  }
  /// The faults in words; each queue in the order of its times, also tasks stopped by the outage.
  [[nodiscard]] std::vector<std::string> faults_of_order() const {
    std::vector<std::string> faults = journal_.lane_faults([](const Run&) { return 0; });
    const auto more = wide_journal_.lane_faults(
        [](const Run& run) { return std::atoi(run.task.c_str() + 1) % kSerialKeys; });
    faults.insert(faults.end(), more.begin(), more.end());
    return faults;
  }
  [[nodiscard]] std::vector<std::string> order() const { return journal_.order(); }

 private:
  void put(const std::string& queue, int number, bool is_long, const json& more) {
    const std::string id = "t" + std::to_string(number);
    json task{{"taskId", id}, {"taskType", "Record"}, {"taskTime", 1000 + number}};
    if (is_long) task["taskPara"] = {{"sleep_first", 600'000}};
    task.update(more);
    REQUIRE(eventually([&] {
      return servers_.ask([&](Kv& kv) {
        kv.put_json("lictor/" + queue + "/tasks/" + id, task);
        return true;
      });
    }));
  }

  Hosts hosts_{kServers};
  TemporaryFolder folder_;
  Journal journal_{folder_.file("journal")}, wide_journal_{folder_.file("wide")};
  Servers servers_;
};

TEST_CASE("tasks stopped by a lost quorum keep their place, whoever leads next") {
  std::string why_not;
  if (!Hosts::possible(why_not)) {
    return tell_skipped("needs root and network namespaces: " + why_not);
  }
  for (const bool another_leads : {false, true}) {
    CAPTURE(another_leads);
    Cluster cluster;
    const auto first = cluster.daemon(0);
    // The first of all, and the first of each serialKey.
    REQUIRE(eventually([&] { return cluster.running() == 1 + kSerialKeys; }));
    const auto second = cluster.daemon(1);
    cluster.lose_quorum();
    REQUIRE(eventually([&] { return cluster.running() == 0; }));
    REQUIRE(eventually([&] { return first->logged("given back to the queue"); }));
    REQUIRE(eventually([&] { return first->logged("error=\"transaction: "); }));
    if (another_leads) first->freeze();
    cluster.regain_quorum();
    REQUIRE(cluster.ends());
    CHECK(cluster.faults_of_order() == std::vector<std::string>{});
    CHECK(cluster.order().size() == 2 * kSerialKeys + 1);
  }
}

}  // namespace
}  // namespace lictor::live
