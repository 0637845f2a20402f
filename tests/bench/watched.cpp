// What it costs to be watched while many tasks run: a reader of all events, a page that reads its
// lists again and again, and a scraper.

#include <atomic>
#include <thread>

#include "bench.h"
#include "kv.h"

namespace lictor::bench {
namespace {

// As "lictor.json" of the worker has it; the port is whichever was free.
std::string face_of(live::Kv& kv) {
  std::string url;
  const bool told = live::eventually([&] {
    const auto member = kv.get("lictor/default/members/bench-1");
    if (!member) return false;
    const auto admin = nlohmann::json::parse(member->value).at("admin");
    if (!admin.empty()) url = admin.at(0);
    return !url.empty();
  });
  require(told, "the daemon tells no admin API");
  return url;
}

class Watchers {
 public:
  explicit Watchers(const std::string& face)
      : events_({"curl", "-sN", face + "/v1/events"}, folder_.file("events")),
        asker_([this, face] { ask(face); }) {}
  ~Watchers() {
    ending_ = true;
    asker_.join();
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

 private:
  // As often as a page does, and more often than a scraper.
  void ask(const std::string& face) const {
    while (!ending_) {
      for (const char* target : {"/metrics", "/v1/queues", "/v1/tasks?limit=50"}) {
        const auto answer = live::run({"curl", "-s", "-o", folder_.file("answer"), face + target});
        require(answer.exit_code == 0, "the admin API does not answer");
      }
      std::this_thread::sleep_for(1s);
    }
  }

  live::TemporaryFolder folder_;
  std::atomic<bool> ending_ = false;
  live::Process events_;
  std::thread asker_;
};

Drained drain_once(const live::ConsulAgent& consul, std::size_t count, bool watched) {
  live::Kv kv{consul.address()};
  kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
  load(consul, kTasksPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
  Worker worker{consul, R"({"concurrency": 64})"};
  std::optional<Watchers> watchers;
  if (watched) watchers.emplace(face_of(kv));
  const Drained drained = drain_waiting(consul, worker, count);
  watchers.reset();
  worker.stop();
  return drained;
}

}  // namespace

void measure_watched(Bench& bench) {
  // Long enough for the pace at which lists are read: a fiftieth of the time.
  const std::size_t count = 5 * bench.sizes().drained;
  Runs alone, watched;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("watched, run " + std::to_string(run + 1));
    for (const bool is_watched : {false, true}) {
      (is_watched ? watched : alone).push_back(bench.on_consul([&](const auto& at) {
        return drain_once(at, count, is_watched);
      }));
    }
  }
  const std::string name = "drain " + std::to_string(count) + " with page, events and scraper: ";
  const std::string against = "nobody looks";
  bench.add({name + "tasks", "tasks/s", median_of(watched, &Drained::rate),
             median_of(alone, &Drained::rate), against, Row::Wanted::kRatioAtLeast, 0.97});
  const auto total = [](const Runs& runs) {
    return median_of(runs, &Drained::daemon_us) + median_of(runs, &Drained::consul_us);
  };
  bench.add({name + "processor time of lictor and Consul a task", "us", total(watched),
             total(alone), against});
  bench.add({name + "lictor's processor time a task", "us", median_of(watched, &Drained::daemon_us),
             median_of(alone, &Drained::daemon_us), against});
}

}  // namespace lictor::bench
