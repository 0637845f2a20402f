// How the leader learns of tasks: names by a watch, values in batches, in generations; and the cost
// of that to Consul and the link.

#include <algorithm>

#include "alone.h"
#include "core/reading/reading_pace.h"
#include "core/reading/value_reader.h"

namespace lictor::core::test {
namespace {

QueueOptions wide() {
  QueueOptions options = options_of("a");
  options.concurrency = 64;
  return options;
}

// A leader at work on a list of which nothing is due soon.
struct Reading : Alone {
  explicit Reading(QueueOptions options = wide()) : Alone(std::move(options)) {
    cluster.exclusive = false;
    all_end_after(1ms);
  }
  // So many of as many serialKeys, under random names, one after the other.
  void put_in_lanes(int count, int lanes, std::function<void(Task&)> change = {}) {
    for (int i = 0; i < count; ++i) {
      Task& task = cluster.make(std::to_string(random.next()));
      task.serial_key = "lane " + std::to_string(i % lanes);
      task.task_time = cluster.wall() + std::chrono::milliseconds{i};
      task.record = std::make_shared<const std::string>(std::to_string(i) + std::string(300, '.'));
      if (change) change(task);
      cluster.store.put(task);
      written.push_back(task.key);
      lane_of[task.key] = task.serial_key;
    }
  }
  // The number of tasks that started before an earlier one of their serialKey.
  int overtaken() {
    std::map<std::string, std::size_t> place;
    for (std::size_t i = 0; i < written.size(); ++i) place[written[i]] = i;
    std::map<std::string, std::size_t> last;
    int count = 0;
    for (const std::string& key : cluster.started) {
      if (!place.contains(key)) continue;
      auto& before = last[lane_of[key]];
      if (place[key] < before) ++count;
      before = std::max(before, place[key]);
    }
    return count;
  }
  bool all_start(Duration within) {
    return cluster.run_until([&] { return cluster.started.size() == written.size(); }, within);
  }
  std::size_t lists() { return all<ListTasks>(daemon).size(); }

  Random random{5};
  Keys written;
  std::map<std::string, std::string> lane_of;
};

TEST_CASE("tasks of one serialKey start in order, or all do, however their names are sorted") {
  for (const bool one_by_one : {false, true}) {
    Reading r{one_by_one ? options_of("a") : wide()};
    put_for_tomorrow(r.cluster, 1'000, 100);
    r.cluster.run_for(1s);
    r.put_in_lanes(one_by_one ? 500 : 4'000, one_by_one ? 1 : 40);
    CHECK(r.all_start(60s));
    CHECK(r.overtaken() == 0);
  }
}

TEST_CASE("tasks of much later start in order when a clock is set forward") {
  for (const bool one_by_one : {false, true}) {
    Reading r{one_by_one ? options_of("a") : wide()};
    int minutes = 0;
    r.put_in_lanes(300, one_by_one ? 1 : 10,
                   r.cluster.due_in(2h + std::chrono::minutes{++minutes}));
    r.cluster.run_for(1s);
    REQUIRE(r.daemon.queue->stats().distant == 300);
    r.cluster.step_clock(r.daemon, 100h);
    CHECK(r.all_start(60s));
    CHECK(r.overtaken() == 0);
  }
}

TEST_CASE("a task that has no order starts before all of its generation is read") {
  Reading r;
  r.cluster.link = 100'000;
  for (int i = 0; i < 100; ++i) {
    r.cluster.put(std::to_string(1'000 + i),
                  with_record(std::to_string(i) + std::string(30'000, '.')));
  }
  r.cluster.run_for(5s);
  CHECK(r.cluster.started.size() > 4);
  CHECK(r.cluster.started.size() < 20);
}

TEST_CASE("our deletions count for the pace until they are reaped, and the transfer counts") {
  ReadingPace pace;
  Instant now{1h};
  const Duration few = pace.cost(now, 1'000);
  CHECK(pace.cost(now, 20'000) > 5ms);
  CHECK(pace.cost(now, 20'000) < 9ms);
  pace.deleted(now, 100'000);
  CHECK(pace.cost(now, 1'000) - few == 16ms);
  pace.listed(now, 1'000);
  pace.listed(now, 1'000);
  CHECK(pace.next(false) > now);
  CHECK(pace.next(false) < now + 100ms);
  CHECK(pace.next(true) == now + 1s);
  now += 16min;
  CHECK(pace.cost(now, 1'000) == few);
  pace.listed(now, 1'000);  // after a pause nothing waits
  CHECK(pace.next(false) < now + 2ms);
  for (const auto& [transfer, pause] : {std::pair{400ms, 3'700ms}, {1min, 9'700ms}}) {
    now += 1min;
    pace.listed(now, 1'000, {}, transfer);
    CHECK(pace.next(false) == now + pause);
  }
}

TEST_CASE("deletions before we led count as much as an answer that did not wait shows") {
  ReadingPace pace;
  Instant now{1h};
  const Duration few = pace.cost(now, 10);
  pace.begin(now);
  CHECK(pace.measures(now));
  pace.listed(now, 10, 32ms);
  CHECK(pace.cost(now, 10) > 29ms);
  CHECK(pace.cost(now, 10) < 31ms);
  CHECK_FALSE(pace.measures(now));
  pace.listed(now, 10);  // it waited
  CHECK(pace.next(false) > now + 290ms);
  now += 10s;
  CHECK(pace.measures(now));
  pace.listed(now, 10, 100ms);  // Consul was busy
  CHECK(pace.cost(now, 10) < 31ms);
  pace.listed(now, 10, 12ms);
  CHECK(pace.cost(now, 10) < 11ms);
  now += 15min;
  CHECK(pace.cost(now, 10) == few);
  CHECK_FALSE(pace.measures(now));
}

TEST_CASE("a leader asks for names that do not wait until it knows what a list costs") {
  CheckedCluster cluster;
  cluster.plan = [](const Task&) { return JobPlan{.after = 1ms, .error = {}}; };
  cluster.spoil<ListTasks>({.back = 50ms});
  Daemon& daemon = cluster.add(wide());
  cluster.run_for(5s);
  int put = 0;
  const auto asked_at_once = [&] {
    cluster.put_and_run(std::to_string(++put), 11s);
    const auto lists = all<ListTasks>(daemon);
    return std::count_if(lists.begin(), lists.end(),
                         [](const ListTasks& each) { return each.index == 0; });
  };
  const auto slow = asked_at_once();
  CHECK(asked_at_once() > slow);
  cluster.spoil<ListTasks>({.back = 1ms});
  const auto fast = asked_at_once();
  CHECK(asked_at_once() == fast);
}

TEST_CASE("producers' deletions count for the pace") {
  constexpr Duration kCost = 200us + 20'000 * 160ns;
  Reading r;
  put_for_tomorrow(r.cluster, 10'000, 20'000);
  r.cluster.run_for(10s);
  for (int i = 10'000; i < 30'000; ++i) r.cluster.store.remove("tasks/" + std::to_string(i));
  r.cluster.run_for(10s);
  const std::size_t before = r.lists();
  for (int i = 0; i < 2'000; ++i) {
    r.cluster.put_and_run("new" + std::to_string(i % 10), 5ms, r.cluster.due_in(24h));
  }
  CHECK(static_cast<std::int64_t>(r.lists() - before) * kCost < 10s / 10 + 300ms);
}

TEST_CASE("a batch of values grows while answers are small, and shrinks if one is large or late") {
  const QueueOptions options = options_of("a");
  BatchSize size{options};
  CHECK(size.keys() * 700'000 < 4'000'000);
  for (int i = 0; i < 10; ++i) size.answered(size.keys(), size.keys() * 500, 1ms);
  CHECK(size.keys() == options.max_operations);
  size.answered(64, 2'000'000, 10ms);
  CHECK(size.keys() == 32);
  size.answered(32, 200'000, options.request_timeout / 2);
  CHECK(size.keys() == 16);
  size.answered(16, 20'000, options.request_timeout / 2);  // the network, not the size
  CHECK(size.keys() == 32);
  for (int i = 0; i < 10; ++i) size.failed(size.keys());
  CHECK(size.keys() == 1);
  size.answered(1, 700'000, 10ms);
  CHECK(size.keys() == 1);
}

TEST_CASE("a rewritten task is found, whatever else is written") {
  Reading r;
  put_for_tomorrow(r.cluster, 10'000, 2'000);
  r.cluster.run_for(5s);
  int written = 0;
  const auto rewritten_starts_within = [&](const std::string& id, Duration limit) {
    r.cluster.put(id);
    const Instant until = r.cluster.now + limit;
    while (r.cluster.now < until && r.cluster.job("tasks/" + id) == nullptr &&
           std::find(r.cluster.started.begin(), r.cluster.started.end(), "tasks/" + id) ==
               r.cluster.started.end()) {
      r.cluster.put_and_run("new" + std::to_string(++written % 10), 20ms, r.cluster.due_in(24h));
    }
    return r.cluster.now < until;
  };
  for (int i = 0; i < 20; ++i) {
    r.cluster.run_for(std::chrono::milliseconds{37 * i});
    CHECK(rewritten_starts_within(std::to_string(10'000 + r.random.next() % 2'000), 3s));
  }
}

TEST_CASE("a list that does not change is hardly looked at") {
  Reading r;
  put_for_tomorrow(r.cluster, 1'000, 2'000);
  r.cluster.run_for(30s);
  const std::size_t before = r.daemon.requests;
  r.cluster.run_for(60s);
  CHECK(r.daemon.requests - before < 60);
  CHECK(all<FetchTasks>(r.daemon).size() < 100);
}

TEST_CASE("a deletion of the whole tree is seen, though it wakes no query") {
  Reading r;
  r.cluster.plan = [](const Task&) { return JobPlan{}; };
  put_for_tomorrow(r.cluster, 1'000, 100);
  r.cluster.put("gone");
  r.cluster.put_and_run("runs", 1s);
  r.cluster.store.remove("tasks/gone");  // its tombstone stays
  r.cluster.run_for(10s);
  REQUIRE(r.cluster.running() == 1);
  r.cluster.store.remove_tree("tasks");  // its tombstone is of a shorter key than the prefix
  CHECK(r.cluster.run_until([&] { return r.cluster.running() == 0; }, 5s));
  r.cluster.run_for(1s);
  CHECK(r.daemon.queue->waiting() == 0);
}

struct Values {
  explicit Values(std::initializer_list<const char*> keys) {
    for (const char* key : keys) reader.read_in_order(key);
    reader.begin({}, {});
    reader.send(now, out);
  }
  [[nodiscard]] TasksFetched reply() const {
    TasksFetched reply;
    reply.request = std::get<FetchTasks>(out.back()).request;
    reply.ok = true;
    return reply;
  }

  QueueOptions options = options_of("a");
  Requests requests;
  ValueReader reader{options, requests};
  Effects out;
  Instant now{1h};
};

TEST_CASE("a key that the token may not read holds up nothing else") {
  Values values{"tasks/a", "tasks/hidden"};
  TasksFetched reply = values.reply();
  Task task;
  task.key = "tasks/a";
  task.record = std::make_shared<const std::string>("{}");
  reply.records.emplace_back(task);
  CHECK(values.reader.accept(values.now, reply) == ValueReader::Use::kInOrder);
  CHECK_FALSE(values.reader.is_open());
  values.reader.send(values.now, values.out);
  CHECK(values.out.size() == 1);
  const Instant again = values.reader.next_deadline();
  CHECK(again == values.now + kRefusedPause);
  // Another hidden key, seen later, does not put it off.
  values.now += 4s;
  values.reader.read_next("tasks/other");
  values.reader.send(values.now, values.out);
  reply = values.reply();
  CHECK(values.reader.accept(values.now, reply) == ValueReader::Use::kNext);
  CHECK(values.reader.next_deadline() == again);
  values.reader.send(again, values.out);
  CHECK(std::get<FetchTasks>(values.out.back()).keys == Keys{"tasks/hidden", "tasks/other"});
}

TEST_CASE("a batch with a missing key is asked for again without it") {
  Values values{"tasks/a", "tasks/b", "tasks/c"};
  TasksFetched reply = values.reply();
  reply.missing = {"tasks/b"};
  CHECK(values.reader.will_read("tasks/a"));
  CHECK(values.reader.accept(values.now, reply) == ValueReader::Use::kInOrder);
  CHECK(values.reader.is_open());
  values.reader.send(values.now, values.out);
  CHECK(std::get<FetchTasks>(values.out.back()).keys == Keys{"tasks/a", "tasks/c"});
  CHECK_FALSE(values.reader.will_read("tasks/b"));
}

TEST_CASE("a list of large tasks is read over a slow link") {
  Cluster cluster;
  cluster.plan = [](const Task&) { return JobPlan{.after = 1ms, .error = {}}; };
  cluster.exclusive = false;
  std::size_t count = 300, bytes = 150'000;
  cluster.link = 12.5e6;  // 100 Mbit/s
  SUBCASE("100 Mbit/s") {}
  SUBCASE("one record comes in time, two do not") {
    cluster.link = 150'000;
    count = 20;
  }
  SUBCASE("small ones among them") { bytes = 0; }
  for (std::size_t i = 0; i < count; ++i) {
    Task& task = cluster.make(std::to_string(1'000 + i));
    const std::size_t size = bytes != 0 ? bytes : i % 10 == 0 ? 380'000 : 100;
    task.record = std::make_shared<const std::string>(std::to_string(i) + std::string(size, '.'));
    cluster.store.put(task);
  }
  cluster.add(wide());
  CHECK(cluster.run_until([&] { return cluster.started.size() == count; }, 120s));
  CHECK(cluster.largest_answer < 4'000'000);
}

TEST_CASE("producers do not pay for the leader's reading") {
  constexpr Duration kCost = 200us + 2'000 * 400ns;  // of a list of so many names
  Reading r;
  put_for_tomorrow(r.cluster, 10'000, 2'000);
  r.cluster.run_for(5s);
  const std::size_t before = r.lists();
  for (int i = 0; i < 5'000; ++i) {  // each of them wakes the watch
    r.cluster.put_and_run("new" + std::to_string(i % 10), 2ms, r.cluster.due_in(24h));
  }
  const auto spent = static_cast<std::int64_t>(r.lists() - before) * kCost;
  CHECK(spent < 10s / 10 + 30ms);
  r.cluster.run_for(1s);
  const Instant put_at = r.cluster.now;
  r.cluster.put("now");
  CHECK(r.cluster.run_until([&] { return !r.cluster.started.empty(); }, 1s));
  CHECK(r.cluster.now - put_at < 20ms);
}

TEST_CASE("tasks that were written during an outage start in order") {
  Reading r;
  put_for_tomorrow(r.cluster, 1'000, 100);
  r.cluster.run_for(1s);
  r.cluster.spoil<ListTasks>({.refused = true});
  r.put_in_lanes(1'000, 10);
  r.cluster.run_for(3s);
  r.cluster.heal();
  CHECK(r.all_start(60s));
  CHECK(r.overtaken() == 0);
}

TEST_CASE("a task that is written again while a list is read has the place of the names after it") {
  Reading r;
  r.cluster.link = 100'000;
  put_for_tomorrow(r.cluster, 1'000, 200);
  const auto put = [&](const std::string& id, int place) {
    r.cluster.put(id, [&](Task& task) {
      task.serial_key = "lane";
      task.task_time = r.cluster.wall() + std::chrono::milliseconds{place};
    });
  };
  put("a", 0);
  r.cluster.run_for(200ms);
  r.cluster.store.remove("tasks/a");
  put("z", 0);
  put("a", 1);
  CHECK(r.cluster.run_until([&] { return r.cluster.started.size() == 2; }, 60s));
  CHECK(r.cluster.started == Keys{"tasks/z", "tasks/a"});
}

TEST_CASE("an old answer, or a look that fails, does not hide that a task was rewritten") {
  Reading r;
  r.cluster.store.remembers = true;
  put_for_tomorrow(r.cluster, 1'000, 200);
  r.cluster.run_for(5s);
  r.cluster.spoil<ListTasks>({.tampering = {Tamper::kStale, 0.5}});
  r.cluster.put_and_run("1199", 10ms);
  r.cluster.heal();
  CHECK(r.cluster.run_until([&] { return r.cluster.started == Keys{"tasks/1199"}; }, 5s));
  r.once({.refused = true}, [](const Effect& e) {
    const auto* check = std::get_if<CheckTasks>(&e);
    return check != nullptr && check->versions.back().key >= "tasks/1198";
  });
  r.cluster.put("1198");
  CHECK(r.cluster.run_until([&] { return r.cluster.started.size() == 2; }, 5s));
}

}  // namespace
}  // namespace lictor::core::test
