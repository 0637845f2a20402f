// Load, short by default; tests/load/load.sh runs each test for as long as one likes:
// LICTOR_LOAD_SECONDS and LICTOR_LOAD_RATE (of PUTs a second), LICTOR_STEP_DOWN_SECONDS,
// LICTOR_SOAK_SECONDS.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "world.h"

namespace lictor::live {
namespace {

// Memory and descriptors of a daemon and its warden.
struct Footprint {
  long memory_kb = 0;
  long descriptors = 0;
};

Footprint footprint_of(pid_t daemon) {
  Footprint sum;
  std::vector<pid_t> pids = children_of(daemon);
  pids.push_back(daemon);
  for (const pid_t pid : pids) {
    const std::string folder = "/proc/" + std::to_string(pid);
    sum.memory_kb += memory_kb(pid, "VmRSS");
    std::error_code ignored;
    for (auto it = std::filesystem::directory_iterator{folder + "/fd", ignored};
         it != std::filesystem::directory_iterator{}; it.increment(ignored)) {
      ++sum.descriptors;
    }
  }
  return sum;
}

// Writes tasks at a steady rate from several threads, each by a connection of its own as `curl`
// does it: a real curl a task, a thousand a second, would measure the starting of processes.
class Producers {
 public:
  using Record = std::function<json(long number)>;

  Producers(const World& world, double rate, Record record)
      : world_(world), rate_(rate), record_(std::move(record)), begin_ns_(monotonic_ns()) {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Producers() {
    given_up_ = true;  // the test has failed, and Consul may be gone
    stop();
  }
  // Returns how many tasks were written: those with smaller numbers.
  long stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return next_;
  }
  // Producers do not catch up with the writes that a hold delayed.
  void hold(bool on) {
    if (on == (held_since_ns_ != 0)) return;
    if (on) {
      held_since_ns_ = monotonic_ns();
    } else {
      held_ns_ += monotonic_ns() - held_since_ns_.exchange(0);
    }
  }
  [[nodiscard]] double seconds() const { return seconds_between(begin_ns_, monotonic_ns()); }
  [[nodiscard]] long refused() const { return refused_; }
  [[nodiscard]] static std::string id_of(long number) {
    return "t" + std::to_string(1'000'000 + number);
  }

 private:
  static constexpr int kThreads = 16;

  void run() {
    while (!stopping_) {
      const double free_s = seconds() - static_cast<double>(held_ns_) / 1e9;
      if (held_since_ns_ != 0 || static_cast<double>(next_) > free_s * rate_) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const long number = next_++;
      const std::string body = record_(number).dump();
      // Written even if Consul is busy: its number is taken.
      while (!given_up_ && Kv{world_.consul.address()}
                                   .request("PUT", "/v1/kv/" + world_.task_key(id_of(number)), body)
                                   .body != "true") {
        ++refused_;
      }
    }
  }

  const World& world_;
  const double rate_;
  const Record record_;
  const std::int64_t begin_ns_;
  std::atomic<long> next_ = 0;
  std::atomic<long> refused_ = 0;
  std::atomic<std::int64_t> held_since_ns_ = 0;  // 0: they are not
  std::atomic<std::int64_t> held_ns_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> given_up_ = false;
  std::vector<std::thread> threads_;
};

// The tasks whose end is in the daemon's log, and how often.
std::map<std::string, int> done_in(const std::string& log) {
  std::map<std::string, int> done;
  std::istringstream lines{log};
  for (std::string line; std::getline(lines, line);) {
    if (!contains(line, " done queue=")) continue;
    const std::size_t begin = line.find("/tasks/") + 7;
    ++done[line.substr(begin, line.find(' ', begin) - begin)];
  }
  return done;
}

TEST_CASE("load: a thousand PUTs a second of tasks that succeed, fail and hang come to their end") {
  const auto seconds = from_environment("LICTOR_LOAD_SECONDS", 5);
  const auto rate = from_environment("LICTOR_LOAD_RATE", 1000);
  World world;
  DaemonSettings settings =
      world.settings("a", {{"concurrency", 64},
                           {"max_attempts", 2},
                           {"backoff", {{"initial", "100ms"}}},
                           {"executors",
                            {{"Succeed", {{"noop", json::object()}}},
                             {"Fail", {{"exec", {"/bin/false"}}}},
                             {"Hang", {{"exec", {"/bin/sleep", "1000"}}, {"timeout", "500ms"}}}}}});
  settings.environment = {{"LICTOR_LOG_LEVEL", "info"}};
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return world.leads(daemon); }));
  const Footprint before = footprint_of(daemon.pid());

  const auto type_of = [](long number) {
    return number % 100 == 7 ? "Hang" : number % 50 == 3 ? "Fail" : "Succeed";
  };
  Producers producers{world, static_cast<double>(rate), [&](long number) {
                        return json{{"taskType", type_of(number)}};
                      }};
  Footprint most;
  const auto sample = [&] {
    const Footprint now = footprint_of(daemon.pid());
    most.memory_kb = std::max(most.memory_kb, now.memory_kb);
    most.descriptors = std::max(most.descriptors, now.descriptors);
    return producers.seconds() >= static_cast<double>(seconds);
  };
  while (!sample()) std::this_thread::sleep_for(100ms);
  const long count = producers.stop();
  const double wrote_s = producers.seconds();
  const std::size_t left = world.waiting();
  const std::int64_t stopped_ns = monotonic_ns();
  REQUIRE(
      eventually([&] { return world.all_done(); }, patience() + std::chrono::seconds{seconds * 2}));
  MESSAGE(count << " PUTs in " << wrote_s << " s, " << static_cast<double>(count) / wrote_s
                << "/s, " << producers.refused() << " of them twice; " << left
                << " left then, all ended " << seconds_between(stopped_ns, monotonic_ns())
                << " s later; memory " << before.memory_kb << " to " << most.memory_kb
                << " kB, descriptors " << before.descriptors << " to " << most.descriptors);

  std::map<std::string, std::string> dead;
  for (const KvEntry& entry : world.kv.list(world.root + "default/dead/")) {
    const json letter = json::parse(entry.value);
    dead[entry.key.substr(entry.key.rfind('/') + 1)] = letter.value("reason", "") + ", " +
                                                       std::to_string(letter.value("attempts", 0)) +
                                                       ", " + letter.value("error", "");
  }
  const auto done = done_in(daemon.log());
  std::vector<std::string> wrong;
  for (long number = 0; number < count; ++number) {
    const std::string id = Producers::id_of(number);
    const std::string type = type_of(number);
    const std::string letter = dead.contains(id) ? dead[id] : "";
    const int ends = done.contains(id) ? done.at(id) : 0;
    const bool right = type == "Succeed" ? ends == 1 && letter.empty()
                       : type == "Fail"
                           ? ends == 0 && letter.starts_with("failed, 2, exit status 1")
                           : ends == 0 && letter.starts_with("failed, 2, timed out");
    if (!right) wrong.push_back(type + " " + id + ": done " + std::to_string(ends) + ", " + letter);
  }
  if (wrong.size() > 10) wrong.resize(10);
  CHECK(wrong == std::vector<std::string>{});
  CHECK(most.descriptors < before.descriptors + 64 * 4);  // each job has a few pipes
}

// `lictor leader --step-down`, which waits until another leads.
bool step_down(const LictorDaemon& daemon) {
  const Output output = lictor(daemon, {"leader", "--step-down", "--timeout", "60s"});
  INFO(output.out);
  CHECK(output.exit_code == 0);
  return output.exit_code == 0;
}

TEST_CASE("load: leadership passes on again and again, and no task is lost or overlaps") {
  const double seconds = static_cast<double>(from_environment("LICTOR_STEP_DOWN_SECONDS", 8));
  World world;
  const auto first = world.daemon("a");
  const auto second = world.daemon("b");
  const auto third = world.daemon("c");
  REQUIRE(eventually([&] {
    return !world.leader().empty() && !world.kv.sessions(first->session_name()).empty() &&
           !world.kv.sessions(second->session_name()).empty() &&
           !world.kv.sessions(third->session_name()).empty();
  }));
  Producers producers{world, 20, [](long number) {
                        return json{{"taskType", "Record"}, {"taskPara", {{"sleep", number % 40}}}};
                      }};
  // A daemon that has just begun to lead would step down again before its first job: let each work
  // off the backlog.
  const auto caught_up = [&] {
    const std::size_t waiting = world.waiting();
    producers.hold(waiting >= 20);  // else a slow machine never catches up
    return waiting < 20;
  };
  long changes = 0;
  while (producers.seconds() < seconds && step_down(*first)) {
    ++changes;
    REQUIRE(eventually(caught_up));
  }
  const long count = producers.stop();
  REQUIRE(eventually([&] { return world.all_done(); },
                     patience() + std::chrono::seconds{static_cast<long>(seconds)}));
  MESSAGE(changes << " changes of leader in " << seconds << " s, " << count << " tasks");
  CHECK(changes >= 2);  // who has stepped down stands back for 10 s
  const std::vector<std::string> order = world.journal.order();
  CHECK(static_cast<long>(order.size()) == count);  // each once
  CHECK(static_cast<long>(std::set<std::string>(order.begin(), order.end()).size()) == count);
  CHECK(static_cast<long>(world.journal.ended()) == count);
  CHECK(world.journal.overlaps() == std::vector<std::string>{});
  CHECK(world.dead() == 0);
}

long median(std::vector<long> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// The medians of the second and of the last third: the first one is for warming up.
struct Trend {
  long middle = 0;
  long last = 0;
};

template <class Field>
Trend trend_of(const std::vector<Footprint>& samples, Field field) {
  const std::size_t third = samples.size() / 3;
  std::vector<long> middle;
  std::vector<long> last;
  for (std::size_t i = third; i < samples.size(); ++i) {
    (i < 2 * third ? middle : last).push_back(samples[i].*field);
  }
  return {median(middle), median(last)};
}

TEST_CASE("load: memory and descriptors of three daemons stay flat") {
  const double seconds = static_cast<double>(from_environment("LICTOR_SOAK_SECONDS", 12));
  World world;
  std::vector<std::unique_ptr<LictorDaemon>> daemons;
  for (const char* node : {"a", "b", "c"}) {
    DaemonSettings settings = world.settings(
        node, {{"concurrency", 8},
               {"max_attempts", 2},
               {"backoff", {{"initial", "100ms"}}},
               {"executors",
                {{"Succeed", {{"noop", json::object()}}}, {"Fail", {{"exec", {"/bin/false"}}}}}}});
    settings.environment = {{"LICTOR_LOG_LEVEL", "warn"}};
    daemons.push_back(std::make_unique<LictorDaemon>(settings));
  }
  REQUIRE(eventually([&] {
    return !world.leader().empty() &&
           std::all_of(daemons.begin(), daemons.end(), [&](const auto& daemon) {
             return world.leads(*daemon) || world.stands_by(*daemon);
           });
  }));
  Producers producers{world, 100, [](long number) {
                        return json{{"taskType", number % 50 == 0 ? "Fail" : "Succeed"}};
                      }};
  std::vector<std::vector<Footprint>> samples(daemons.size());
  // On a machine too busy for the rate a backlog would grow, and memory by a kilobyte a task.
  const std::size_t most_waiting = 500;
  std::size_t longest = 0;
  // Every daemon leads several times within a third; a change costs little.
  const double change_every_s = std::min(10.0, seconds / 12);
  long changes = 0;
  while (producers.seconds() < seconds) {
    for (std::size_t i = 0; i < daemons.size(); ++i) {
      samples[i].push_back(footprint_of(daemons[i]->pid()));
    }
    if (producers.seconds() > change_every_s * static_cast<double>(changes + 1)) {
      REQUIRE(step_down(*daemons.front()));
      ++changes;
    }
    const std::size_t waiting = world.waiting();
    longest = std::max(longest, waiting);
    producers.hold(waiting > most_waiting);
    // Dead letters are not to fill Consul in an hour.
    for (const KvEntry& entry : world.kv.list(world.root + "default/dead/")) {
      world.kv.remove(entry.key);
    }
    std::this_thread::sleep_for(200ms);
  }
  const long count = producers.stop();
  REQUIRE(eventually([&] { return world.all_done(); }));
  MESSAGE(count << " tasks and " << changes << " changes of leader in " << seconds << " s; up to "
                << longest << " tasks waited");
  // The daemons are alike, except that one that has not led yet needs less memory.
  long middle = 0;
  for (const auto& each : samples) {
    middle = std::max<long>(middle, trend_of(each, &Footprint::memory_kb).middle);
  }
  for (std::size_t i = 0; i < daemons.size(); ++i) {
    const Trend memory = trend_of(samples[i], &Footprint::memory_kb);
    const Trend descriptors = trend_of(samples[i], &Footprint::descriptors);
    MESSAGE(daemons[i]->node() << ": memory " << memory.middle << ", then " << memory.last
                               << " kB; descriptors " << descriptors.middle << ", then "
                               << descriptors.last);
    if (kMemoryTells) CHECK(memory.last < middle + middle / 20 + 2048);
    CHECK(descriptors.last <= descriptors.middle + 8);  // connections come and go
    CHECK(daemons[i]->runs());
  }
}

}  // namespace
}  // namespace lictor::live
