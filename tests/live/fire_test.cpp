// A cluster under fire: three Consul servers and five daemons on five hosts, thousands of tasks,
// and servers, daemons and networks that fail at random. Then what the jobs wrote down is checked.
// One queue runs one task after the other, one several, and one is shared by all hosts.
//
// LICTOR_FIRE_SECONDS (of faults), LICTOR_FIRE_TASKS (in each queue), LICTOR_FIRE_SEED. After 5
// minutes of faults it also waits until all have even shares.

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "hosts.h"
#include "skip.h"
#include "world.h"

namespace lictor::live {
namespace {

constexpr int kServers = 3;
constexpr int kHosts = 5;
constexpr int kSerialKeys = 5;         // of the queue that runs several tasks
constexpr int kSharedSerialKeys = 30;  // of the queue with partitions
constexpr int kPartitions = 8;

std::string id_of(int number) { return "t" + std::to_string(100'000 + number); }

class Fire {
 public:
  explicit Fire(std::uint64_t seed)
      : random_(seed),
        journal_(folder_.file("journal")),
        wide_journal_(folder_.file("wide")),
        shared_journal_(folder_.file("shared")) {
    for (int host = 0; host < kHosts; ++host) daemons_.push_back(make_daemon(host));
  }
  ~Fire() {
    keep_for_failure("journal", read_text(journal_.file()));
    heal_all();
  }

  void submit(int count) {
    for (int i = 0; i < count; ++i) {
      const std::array kinds{"Record", "Record", "Once", "Effect", "Failing"};
      const std::string kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
      // A few last, at first, so long that a fault meets them.
      const json record{{"sleep", 20}, {"sleep_first", i % 120 == 5 ? 12'000 : 20}};
      json para = record;
      if (kind == "Failing") para["fail_until"] = 2;
      if (kind == "Effect") {
        para["commit"] = json::array({{{"key", "effects/" + id_of(i)}, {"value", "done"}}}).dump();
      }
      kinds_[id_of(i)] = kind;
      put("default", i, {{"taskType", kind}, {"taskTime", 1000 + i}, {"taskPara", para}});
      for (const auto& [queue, keys] :
           {std::pair{"wide", kSerialKeys}, {"shared", kSharedSerialKeys}}) {
        put(queue, i,
            {{"taskType", "Record"},
             {"taskTime", 1000 + i},
             {"serialKey", "db" + std::to_string(i % keys)},
             {"taskPara", record}});
      }
    }
  }

  void burn(std::chrono::seconds span) {
    const std::int64_t end = monotonic_ns() + span / 1ns;
    lose_quorum();
    while (monotonic_ns() < end) {
      misfortune();
      pause(between(500, 3000));
      if (chance(0.7)) heal_all();
    }
    heal_all();
  }

  [[nodiscard]] bool ends() {
    return eventually(
        [&] {
          pause(250);
          return servers_.ask([](Kv& kv) {
            return kv.list("lictor/default/tasks/").empty() &&
                   kv.list("lictor/wide/tasks/").empty() && kv.list("lictor/shared/tasks/").empty();
          });
        },
        patience() * 4 + 100ms * static_cast<int>(kinds_.size()));
  }

  [[nodiscard]] std::map<std::string, int> shares() {
    std::map<std::string, int> shares;
    static_cast<void>(servers_.ask([&](Kv& kv) {
      shares = shares_of(kv, "lictor/shared/leader", kPartitions);
      return true;
    }));
    return shares;
  }
  [[nodiscard]] bool all_led() {
    return eventually([&] { return !shares().empty(); });
  }
  /// A daemon that started lately leaves the others their partitions, for 5 minutes.
  [[nodiscard]] bool shares_become_even() {
    return eventually(
        [&] {
          pause(1000);
          const auto now = shares();
          if (now.size() != kHosts) return false;
          const auto [least, most] =
              std::minmax_element(now.begin(), now.end(),
                                  [](const auto& a, const auto& b) { return a.second < b.second; });
          return most->second - least->second <= 1;
        },
        7min);
  }

  void check() {
    std::map<std::string, std::vector<Run>> runs;
    for (const Run& run : journal_.runs()) runs[run.task].push_back(run);
    std::map<std::string, std::string> dead;
    std::set<std::string> effects;
    REQUIRE(eventually([&] {
      return servers_.ask([&](Kv& kv) {
        for (const KvEntry& letter : kv.list("lictor/default/dead/")) {
          dead[letter.key.substr(std::string{"lictor/default/dead/"}.size())] =
              json::parse(letter.value).value("reason", "");
        }
        for (const KvEntry& effect : kv.list("effects/")) {
          CHECK(effect.create_index == effect.modify_index);  // written once
          effects.insert(effect.key.substr(std::string{"effects/"}.size()));
        }
        return true;
      });
    }));
    int never = 0;
    for (const auto& [id, kind] : kinds_) {
      INFO(id, ", ", kind);
      const auto& of_task = runs[id];
      const bool is_dead = dead.contains(id);
      if (kind == "Once") {
        CHECK(of_task.size() <= 1);
        CHECK((is_dead || of_task.size() == 1));
        if (is_dead) CHECK((dead[id] == "owner lost" || dead[id] == "stopped"));
        never += of_task.empty() ? 1 : 0;
      } else {
        CHECK_FALSE(is_dead);
        REQUIRE_FALSE(of_task.empty());
        CHECK(of_task.back().ended);
        if (kind == "Failing") CHECK(of_task.back().attempt >= 2);
      }
      if (kind == "Effect") CHECK(effects.contains(id));
    }
    CHECK(journal_.overlaps() == std::vector<std::string>{});
    CHECK(journal_.falling_tokens() == std::vector<std::string>{});
    check_order();
    check_lanes(wide_journal_, kSerialKeys);
    check_lanes(shared_journal_, kSharedSerialKeys);
    MESSAGE(journal_.runs().size() << " runs of " << kinds_.size() << " tasks, " << dead.size()
                                   << " dead letters, " << never << " never run; " << faults_);
  }

 private:
  // In the exclusive queue tasks begin in the order of their times, also those that a fault has
  // ended; a failed task makes way for others until it is tried again.
  void check_order() {
    std::string last;
    std::set<std::string> failing;
    for (const Run& run : journal_.runs()) {
      if (kinds_[run.task] == "Failing" && !failing.insert(run.task).second) continue;
      CHECK_MESSAGE(run.task >= last, run.task << " began after " << last);
      last = std::max(last, run.task);
    }
  }
  // Tasks of one serialKey run one at a time, and in order.
  void check_lanes(const Journal& journal, int keys) {
    CHECK(journal.lane_faults([keys](const Run& run) {
      return std::atoi(run.task.c_str() + 1) % keys;
    }) == std::vector<std::string>{});
    CHECK(journal.tasks() == kinds_.size());
  }

  std::unique_ptr<LictorDaemon> make_daemon(int host) {
    DaemonSettings settings = servers_.settings_on(host);
    const auto executor = [&](const Journal& journal, const char* lock) {
      return json{{"exec", {LICTOR_JOB_RECORDER, journal.file(), settings.node, lock}}};
    };
    json once = executor(journal_, "queue");
    once["delivery"] = "at_most_once";
    once["max_attempts"] = 1;
    // A lost task is not given up, however often it is lost.
    settings.queue = {{"max_losses", 1000},
                      {"max_attempts", 1000},
                      {"backoff", {{"initial", "50ms"}, {"max", "1s"}}},
                      {"executors", {{"*", executor(journal_, "queue")}, {"Once", once}}}};
    settings.more_queues.push_back({{"name", "wide"},
                                    {"concurrency", 4},
                                    {"prefetch", 8},
                                    {"max_losses", 1000},
                                    {"executors", {{"*", executor(wide_journal_, "task")}}}});
    settings.more_queues.push_back({{"name", "shared"},
                                    {"partitions", kPartitions},
                                    {"concurrency", 2},
                                    {"max_losses", 1000},
                                    {"executors", {{"*", executor(shared_journal_, "task")}}}});
    return std::make_unique<LictorDaemon>(settings);
  }

  void misfortune() {
    const int host = static_cast<int>(random_() % kHosts);
    LictorDaemon& daemon = *daemons_[static_cast<std::size_t>(host)];
    const std::size_t server = random_() % kServers;
    const auto drawn = random_() % 9;
    if (drawn < 2) {
      note("kill daemon");
      daemon.kill();
      pause(between(0, 3000));
      daemon.start();
    } else if (drawn == 2) {
      note("freeze daemon");
      daemon.freeze();
      frozen_.insert(host);
    } else if (drawn == 3) {
      note("kill server");
      servers_[server].kill();
      pause(between(0, 3000));
      servers_[server].start();
    } else if (drawn == 4) {
      note("freeze server");
      servers_[server].signal(SIGSTOP);
      stopped_.insert(server);
    } else if (drawn == 5) {
      lose_quorum();
    } else {
      const bool both_ways = drawn < 8;
      note(both_ways ? "cut" : "cut one way");
      both_ways ? hosts_.cut(host) : hosts_.cut_out(host);
      cut_.insert(host);
    }
  }
  // For longer than any lease: jobs are stopped, and given back while Consul takes no writes.
  void lose_quorum() {
    note("lose quorum");
    servers_.lose_quorum();
    pause(between(8'000, 20'000));
    servers_.regain_quorum();
  }
  void heal_all() {
    for (const int host : cut_) hosts_.heal(host);
    for (const int host : frozen_) {
      LictorDaemon& daemon = *daemons_[static_cast<std::size_t>(host)];
      daemon.thaw();
      if (!daemon.runs()) daemon.start();  // its warden has killed it
    }
    for (const std::size_t server : stopped_) servers_[server].signal(SIGCONT);
    cut_.clear();
    frozen_.clear();
    stopped_.clear();
  }

  void put(const std::string& queue, int number, const json& task) {
    const std::string key = "lictor/" + queue + "/tasks/" + id_of(number);
    REQUIRE(eventually([&] {
      return servers_.ask([&](Kv& kv) {
        kv.put_json(key, task);
        return true;
      });
    }));
  }
  bool chance(double p) { return std::uniform_real_distribution<>{}(random_) < p; }
  int between(int least, int most) { return std::uniform_int_distribution<>{least, most}(random_); }
  static void pause(int ms) {
    static_cast<void>(throughout(ms * 1ms, [] { return true; }));
  }
  void note(const char* fault) { faults_ += (faults_.empty() ? "" : ", ") + std::string{fault}; }

  std::mt19937_64 random_;
  Hosts hosts_{kHosts};
  TemporaryFolder folder_;
  Journal journal_, wide_journal_, shared_journal_;
  Servers servers_{hosts_, kServers};
  std::vector<std::unique_ptr<LictorDaemon>> daemons_;
  std::map<std::string, std::string> kinds_;
  std::set<int> cut_, frozen_;
  std::set<std::size_t> stopped_;
  std::string faults_;
};

TEST_CASE("a cluster under fire loses nothing, runs nothing twice at once, and keeps the order") {
  std::string why_not;
  if (!Hosts::possible(why_not)) {
    return tell_skipped("needs root and network namespaces: " + why_not);
  }
  const auto seed = from_environment("LICTOR_FIRE_SEED", 1);
  CAPTURE(seed);
  Fire fire{seed};
  fire.submit(static_cast<int>(from_environment("LICTOR_FIRE_TASKS", 600)));
  const std::chrono::seconds span{from_environment("LICTOR_FIRE_SECONDS", 40)};
  fire.burn(span);
  REQUIRE(fire.ends());
  fire.check();
  CHECK(fire.all_led());
  if (span >= 5min) CHECK(fire.shares_become_even());
}

}  // namespace
}  // namespace lictor::live
