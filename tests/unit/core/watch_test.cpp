// How the leader learns of tasks: by their names.

#include <algorithm>

#include "alone.h"
#include "core/control.h"
#include "core/leadership/lock.h"
#include "core/requests.h"

namespace lictor::core::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a new task does not wait for the cost of the first reading of a long list") {
  Cluster cluster;
  put_for_tomorrow(cluster, 1'000, 1'000);
  cluster.add(options_of("a"));
  REQUIRE(cluster.run_until([&] { return cluster.leader() != nullptr; }, 1s));
  cluster.run_for(100ms);
  cluster.put("now");
  CHECK(cluster.run_until([&] { return cluster.started.size() == 1; }, 500ms));
}

TEST_CASE("a task written again under a name that was just deleted is found in a long list") {
  Alone a;
  put_for_tomorrow(a.cluster, 1'000, 200);
  a.cluster.run_for(1s);
  a.cluster.put_and_run("1", 1s);
  REQUIRE(a.cluster.started == Keys{"tasks/1"});

  SUBCASE("while we do not know that it is deleted") {
    a.once({.back = 50ms}, [](const Effect& e) { return finishes(e, "tasks/1"); });
    a.end_and_run("tasks/1", 1ms);
  }
  SUBCASE("in names that were asked for before it was deleted") {
    a.once({.out = 50ms}, [](const Effect& e) { return std::holds_alternative<ListTasks>(e); });
    a.cluster.put_and_run("2", 10ms, a.cluster.due_in(24h));  // the next names are on their way
    a.end_and_run("tasks/1", 10ms);
  }
  REQUIRE_FALSE(a.cluster.store.has("tasks/1"));
  a.cluster.put_and_run("1", 1s);  // nothing else changes
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/1"});
}

TEST_CASE("only changed tasks are read again") {
  Alone a;
  a.cluster.store.control(true, "");
  put_for_tomorrow(a.cluster, 10'000, 3'000);
  a.cluster.run_for(5s);
  const std::size_t before = all<FetchTasks>(a.daemon).size();
  a.cluster.put("11234");  // rewritten: due now, were it not for the pause
  a.cluster.run_for(20s);
  const auto fetches = all<FetchTasks>(a.daemon);
  REQUIRE(fetches.size() == before + 1);
  CHECK(fetches.back().keys == Keys{"tasks/11234"});
  a.cluster.pause_and_run(false, 1s);
  CHECK(a.cluster.started == Keys{"tasks/11234"});
}

TEST_CASE("new tasks wait while more are ready than can be started, and no longer") {
  Alone a;
  a.cluster.store.control(true, "");
  const auto put = [&](int first, int count) {
    for (int i = first; i < first + count; ++i) a.cluster.put(std::to_string(1'000 + i));
  };
  put(0, 200);
  a.cluster.run_for(1s);
  const auto readings = [&] { return all<ListTasks>(a.daemon).size(); };
  const auto in_a_second = [&](int first) {
    const std::size_t before = readings();
    for (int i = 0; i < 100; ++i) {
      put(first + i, 1);
      a.cluster.run_for(10ms);
    }
    return readings() - before;
  };
  CHECK(in_a_second(200) > 20);
  put(300, 3'000);
  CHECK(in_a_second(4'000) < 15);
}

TEST_CASE("a listing that a token may not read withdraws nothing") {
  Alone a;
  a.cluster.put("1");
  a.cluster.put_and_run("2", 100ms);
  a.cluster.store.unreadable = {"tasks/"};
  a.cluster.put("3");  // some write, for the watch to wake
  a.cluster.run_for(1s);
  CHECK(a.cluster.running() == 1);
  a.cluster.store.unreadable.clear();
  a.end_and_run("tasks/1", 1s);
  CHECK(a.cluster.started == Keys{"tasks/1", "tasks/2"});
}

TEST_CASE("the folder and the control key are made once, also when the reply is lost") {
  CheckedCluster cluster;
  int losses = 2;
  cluster.fault = [&](const Daemon&, const Effect& e) {
    if (!std::holds_alternative<Commit>(e) || losses == 0) return Fault{};
    return Fault{.lose_request = losses-- == 2, .lose_reply = true};
  };
  Daemon& daemon = cluster.add(options_of("a"));
  cluster.run_for(60s);
  CHECK(losses == 0);
  CHECK(cluster.store.serve(cluster.now, ListTasks{}).marker);
  CHECK(cluster.store.serve(cluster.now, WatchControl{}).found);
  CHECK(all<Commit>(daemon).size() < 8);
}

TEST_CASE("the folders and the control key are made again whenever they are deleted") {
  Alone a;
  for (int i = 0; i < 3; ++i) {
    a.cluster.run_for(15s);
    for (const char* key : {"tasks/", "schedules/", "control"}) {
      CAPTURE(key);
      CHECK(a.cluster.store.has(key));
      a.cluster.store.remove(key);
    }
  }
}

TEST_CASE("answers without an index are asked for again at a pace, by leader and candidate") {
  Two two;
  two.cluster.spoil({.tampering = {Tamper::kNoIndex}},
                    [](const Daemon&, const Effect&) { return true; });
  // All watches are answered, and asked again.
  two.cluster.store.overwrite_leader_key();
  two.cluster.store.control(false, "");
  two.cluster.put_and_run("1", 1s);
  const std::size_t leaders = two.a.requests, others = two.b->requests;
  two.cluster.run_for(1min);
  CHECK(two.a.requests - leaders < 500);  // twice a second for each of four watches
  CHECK(two.b->requests - others < 200);
}

TEST_CASE("a control key that may not be made is asked for now and then, not ever more") {
  Cluster cluster;
  cluster.store.no_right = {"control", "tasks/"};
  Daemon& daemon = cluster.add(options_of("a"));
  cluster.run_for(10min);
  std::size_t most = 0;
  for (const Commit& commit : all<Commit>(daemon)) most = std::max(most, commit.ops.size());
  CHECK(most <= 3);  // with the folder key of the schedules, which may be made
  CHECK(all<Commit>(daemon).size() < 300);
}

template <class Effect>
Effect last(const Effects& out) {
  REQUIRE(std::holds_alternative<Effect>(out.back()));
  return std::get<Effect>(out.back());
}

// The index from which it asks again after that answer.
template <class Ask, class Watch, class Reply>
std::uint64_t index_after(Watch& watch, Reply reply, Instant& now, Effects& out) {
  reply.request = last<Ask>(out).request;
  static_cast<void>(watch.on(now, reply, out));
  if (!reply.ok) {
    now = watch.next_deadline();
    watch.on_time(now, out);
  }
  return last<Ask>(out).index;
}

TEST_CASE("the control key's watch keeps its index over one failure, and over refusals by limits") {
  Requests requests;
  Control control{requests};
  Effects out;
  Instant now{1h};
  const auto answer = [&](const ControlRead& reply) {
    return index_after<WatchControl>(control, reply, now, out);
  };
  ControlRead read;
  read.ok = read.found = true;
  read.consul_index = 9;
  ControlRead lost;
  ControlRead refused;
  refused.over_limit = true;

  control.start(out);
  CHECK(answer(lost) == 0);  // by a quorum, until there was an answer
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
  for (int i = 0; i < 5; ++i) CHECK(answer(refused) == 9);
  CHECK(answer(lost) == 0);
  CHECK(answer(read) == 9);
  CHECK(answer(lost) == 9);
}

TEST_CASE("of an outage each error is reported once, up to a few; the next one begins anew") {
  StoreTrouble trouble;
  Effects out;
  const auto report = [&](const std::string& error) { trouble.report("reading", error, out); };
  for (const char* error : {"after 10 s", "after 29 s", "b", "c", "d", "e"}) report(error);
  REQUIRE(out.size() == 4);
  CHECK(std::get<Fact>(out.back()).text == "reading: d");
  CHECK(trouble.pause() == kRefusedPause);
  trouble.over();
  report("after 10 s");
  CHECK(out.size() == 5);
  CHECK(trouble.pause() == kRetryPause);
}

struct Campaign {
  Campaign() { lock.campaign(now, "ours", out); }

  const QueueOptions options;
  Requests requests;
  StoreTrouble trouble;
  Lock lock{options, {}, requests, trouble};
  Effects out;
  Instant now{1h};
};

TEST_CASE("the leader key's watch keeps its index over one failure, and over refusals by limits") {
  Campaign c;
  const auto answer = [&](const LeaderRead& reply) {
    return index_after<ReadLeader>(c.lock, reply, c.now, c.out);
  };
  LeaderRead held;
  held.ok = held.found = true;
  held.session = "another";
  held.holder = "b";
  held.modify_index = 5;
  held.consul_index = 9;
  LeaderRead refused;
  refused.over_limit = true;
  CHECK(answer(held) == 9);
  CHECK(answer({}) == 9);
  CHECK(answer(held) == 9);
  for (int i = 0; i < 5; ++i) CHECK(answer(refused) == 9);
  CHECK(answer({}) == 9);
  CHECK(answer({}) == 0);
  CHECK(answer(held) == 9);
}

TEST_CASE("a lock that Consul's limits refused is asked for again, and nothing is read") {
  Campaign c;
  LeaderRead released;
  released.ok = released.found = released.released = true;
  released.modify_index = released.consul_index = 9;
  released.request = last<ReadLeader>(c.out).request;
  static_cast<void>(c.lock.on(c.now, released, c.out));
  const LockReplied refused{
      last<AcquireLock>(c.out).request, LockReplied::Answer::kOverLimit, 0, {}};
  const std::size_t asked = c.out.size();
  static_cast<void>(c.lock.on(c.now, refused, c.out));
  CHECK(std::all_of(c.out.begin() + static_cast<std::ptrdiff_t>(asked), c.out.end(),
                    [](const Effect& each) { return std::holds_alternative<Fact>(each); }));
  const Instant again = c.lock.next_deadline();
  CHECK(again >= c.now + 500ms);
  c.lock.on_time(again, c.out);
  CHECK(last<AcquireLock>(c.out).free_at == 9);
}

constexpr int kList = 500;

// A daemon that does not lead yet, beside a long list that it is to read.
struct LongListScene {
  LongListScene() {
    cluster.plan = [](const Task&) { return JobPlan{.after = 1ms, .error = {}}; };
    put_for_tomorrow(cluster, 1'000, kList);
    daemon = &cluster.add(options_of("a"));
  }
  // Adds a task that has been due for `age`; the oldest starts first.
  void due(const std::string& id, std::chrono::seconds age) {
    cluster.put(id, [&](Task& task) { task.execute_at = cluster.wall() - age; });
  }
  bool lead() {
    return cluster.run_until([&] { return cluster.leader() != nullptr; }, 1s);
  }
  std::vector<FetchTasks> parts() { return all<FetchTasks>(*daemon); }
  std::size_t known() {
    const auto held = daemon->queue->stats();
    return held.tasks + held.distant;
  }

  CheckedCluster cluster;
  Daemon* daemon = nullptr;
};

TEST_CASE("a long list is read in batches, all of it before anything starts") {
  LongListScene l;
  std::string oldest = "1001-first", other = "1498-last";  // in the first part and in the last
  SUBCASE("the oldest is in the first") {}
  SUBCASE("the oldest is in the last") { std::swap(oldest, other); }
  l.due(oldest, 2s);
  l.due(other, 1s);
  l.cluster.spoil<FetchTasks>({.back = 10ms});  // each reading takes so long
  REQUIRE(l.lead());
  CHECK(l.cluster.run_until([&] { return !l.cluster.started.empty(); }, 2s));
  const auto parts = l.parts();
  CHECK(parts.size() > 4);
  for (const FetchTasks& part : parts) CHECK(part.keys.size() <= limits::kMostOperations);
  l.cluster.run_for(2s);
  CHECK(l.cluster.started == Keys{"tasks/" + oldest, "tasks/" + other});
  CHECK(l.known() == kList);
}

TEST_CASE("tasks that come, go or change while a long list is read are seen") {
  LongListScene l;
  l.cluster.spoil<FetchTasks>({.back = 20ms});
  REQUIRE(l.lead());
  REQUIRE(l.cluster.run_until([&] { return l.parts().size() == 3; }, 5s));
  REQUIRE(l.cluster.started.empty());
  REQUIRE_FALSE(l.daemon->queue->drained());
  l.cluster.store.remove("tasks/1001");
  l.cluster.store.remove("tasks/1450");
  l.due("1002", 3s);
  l.due("1451", 2s);
  l.due("12345", 1s);
  CHECK(l.cluster.run_until([&] { return l.cluster.started.size() == 3; }, 5s));
  auto started = l.cluster.started;
  std::sort(started.begin(), started.end());
  CHECK(started == Keys{"tasks/1002", "tasks/12345", "tasks/1451"});
  l.cluster.run_for(1s);
  CHECK(l.known() == kList - 4);
}

}  // namespace
}  // namespace lictor::core::test
