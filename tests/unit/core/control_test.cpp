// The operators' requests in the control key: pauses and step-downs, also over a change of leader.

#include "alone.h"

namespace lictor::core::test {

TEST_CASE("an unreadable control key pauses the queue, whoever leads, until it is corrected") {
  Two two;
  two.cluster.store.control(true, "");
  two.cluster.put_and_run("1", 1s);
  two.cluster.store.overwrite_control();
  two.cluster.run_for(1s);
  two.cluster.tell(two.a, StopRequested{});
  CHECK(two.until_leader(*two.b) < 100ms);
  two.cluster.run_for(5s);
  CHECK(two.cluster.started.empty());
  const Reason reason = two.b->queue->why(two.cluster.now, "tasks/1").front();
  CHECK(reason.kind == Reason::Kind::kPaused);
  CHECK(reason.text.starts_with("a control key that cannot be read"));
  CHECK(count(two.a, Fact::Kind::kControlUnreadable) == 1);
  CHECK(count(*two.b, Fact::Kind::kControlUnreadable) == 1);
  two.cluster.pause_and_run(false, 1s);
  CHECK(two.cluster.started == Keys{"tasks/1"});
  CHECK(count(*two.b, Fact::Kind::kResumed) == 1);
}

TEST_CASE("a step-down affects the leader at the time of the request, and no later leader") {
  Two two;
  two.cluster.store.control(false, "first");
  two.until_leader(*two.b);
  two.cluster.run_for(500ms);
  CHECK(two.a.waiting.size() == 1);  // the watch of the leader key, nothing that a leader asks
  two.cluster.run_for(15s);
  two.cluster.store.control(false, "second");
  two.until_leader(two.a);
  two.cluster.run_for(15s);
  CHECK(two.cluster.leader() == &two.a);
  two.cluster.store.control(false, "");  // it was taken back
  two.cluster.run_for(15s);
  CHECK(two.cluster.leader() == &two.a);
  CHECK(count(two.a, Fact::Kind::kSteppedDown) == 1);
}

TEST_CASE("an old step-down is not obeyed when its key seems to have been gone for a while") {
  Cluster cluster;
  cluster.store.control(false, "of an earlier leader");
  Daemon& a = cluster.add(options_of("a"));
  cluster.run_for(5s);
  REQUIRE(cluster.leader() == &a);
  cluster.store.remove_control();
  cluster.run_for(500ms);
  cluster.store.control(false, "of an earlier leader");
  cluster.run_for(5s);
  CHECK(cluster.leader() == &a);
  CHECK(count(a, Fact::Kind::kSteppedDown) == 0);
  cluster.store.control(false, "of this one");
  cluster.run_for(5s);
  CHECK(count(a, Fact::Kind::kSteppedDown) == 1);
}

TEST_CASE("a step-down works if the daemon may not create the control key") {
  Cluster cluster;
  cluster.store.no_right.insert("control");
  Daemon& a = cluster.add(options_of("a"));
  cluster.run_for(5s);
  REQUIRE(cluster.leader() == &a);
  cluster.store.control(false, "please");
  cluster.run_for(5s);
  CHECK(count(a, Fact::Kind::kSteppedDown) == 1);
}

TEST_CASE("a control key that may not be read holds up nothing, and is read again") {
  Requests requests;
  Control control{requests};
  Effects out;
  control.start(out);
  const std::uint64_t reading = control.reading();
  for (int i = 0; i < 2; ++i) {
    CHECK(control.has_read(reading) == (i != 0));
    ControlRead denied;
    denied.request = std::get<WatchControl>(out.back()).request;
    denied.denied = true;
    denied.error = "Permission denied";
    out.clear();
    CHECK_FALSE(control.on(kStart, denied, out));
    CHECK(control.has_read(reading));
    CHECK_FALSE(control.paused());
    REQUIRE(out.size() == (i == 0 ? 1U : 0U));  // said once
    if (i == 0) CHECK(std::get<Fact>(out.back()).kind == Fact::Kind::kDenied);
    out.clear();
    CHECK(control.next_deadline() == kStart + 5s);
    control.on_time(kStart + 5s, out);
    REQUIRE(out.size() == 1);
  }
  // A further partition waits for a reading of its own, and no earlier answer counts.
  ControlRead early{std::get<WatchControl>(out.back()).request, true};
  control.read_again(out);
  CHECK_FALSE(control.on(kStart, early, out));
  CHECK_FALSE(control.has_read(control.reading()));
}

TEST_CASE("a paused queue goes on when its control key is deleted") {
  Cluster cluster;
  Daemon& a = cluster.add(options_of("a"));
  cluster.store.no_right.insert("control");  // nor is it made again
  cluster.run_for(1s);
  cluster.pause_and_run(true, 5s);
  cluster.put_and_run("1", 5s);
  REQUIRE(cluster.started.empty());
  cluster.store.remove_control();
  cluster.run_for(5s);
  CHECK(cluster.started == Keys{"tasks/1"});
  CHECK(count(a, Fact::Kind::kResumed) == 1);
}

TEST_CASE("a step-down whose leader is lost meanwhile is over") {
  QueueOptions options = options_of("a");
  options.drain_timeout = 1h;
  Cluster cluster;
  Daemon& a = cluster.add(options);
  cluster.put_and_run("1", 1s);
  cluster.store.control(false, "please");
  cluster.run_for(1s);
  REQUIRE(a.queue->draining());
  cluster.kill_session();
  cluster.run_for(40s);
  CHECK(cluster.leader() == &a);
  CHECK_FALSE(a.queue->draining());
  CHECK(cluster.started == Keys{"tasks/1", "tasks/1"});
}

TEST_CASE("a step-down that is requested while the daemon stops does not keep it from stopping") {
  Two two;
  two.cluster.put_and_run("1", 1s);
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(1s);
  two.cluster.store.control(false, "please");
  two.cluster.run_for(1s);
  two.cluster.end_job(two.a, "tasks/1");
  two.until_leader(*two.b);
  CHECK(two.a.stopped);
}

TEST_CASE("a job that will not end: the lock is left to its TTL, and nothing is begun any more") {
  Two two{options_with([](QueueOptions& o) { o.concurrency = 2; })};
  two.cluster.stopping = [](Duration) { return Duration{1h}; };
  two.cluster.put_and_run("1", 1s);
  const std::string session = two.cluster.store.leader_session();
  two.cluster.tell(two.a, StopRequested{});
  two.cluster.run_for(10s);
  two.cluster.put("2");
  CHECK(two.cluster.run_until([&] { return two.a.stopped; }, 60s));
  CHECK(all<ReleaseLock>(two.a).empty());
  CHECK(two.cluster.store.leader_session() == session);
  CHECK_FALSE(two.cluster.store.task("tasks/2")->stamp.taken);
}

TEST_CASE("a job that does not end in a step-down keeps its daemon in the lead") {
  Two two{options_with([](QueueOptions& o) { o.drain_timeout = 1s; })};
  two.cluster.stopping = [](Duration) { return Duration{1h}; };
  two.cluster.put_and_run("1", 1s);
  two.cluster.store.control(false, "please");
  two.cluster.run_for(2min);
  CHECK(two.cluster.leader() == &two.a);
  CHECK(all<ReleaseLock>(two.a).empty());
  CHECK_FALSE(two.a.queue->draining());
}

TEST_CASE("a stop during an outage ends, and leaves the session to its TTL") {
  for (const bool leads : {true, false}) {
    Two two;
    Daemon& daemon = leads ? two.a : *two.b;
    two.cut_off = &daemon;
    two.cluster.tell(daemon, StopRequested{});
    CHECK(two.cluster.run_until([&] { return daemon.stopped; }, 10s));
    CHECK(all<ReleaseLock>(daemon).size() == (leads ? 1 : 0));
  }
}

TEST_CASE("a stop before anything was reached ends") {
  for (const Duration after : {0ms, 1ms, 2ms, 3ms, 4ms, 5ms, 6ms, 7ms}) {
    CheckedCluster cluster;
    Daemon& a = cluster.add(options_of("a"));
    cluster.run_for(after);
    cluster.tell(a, StopRequested{});
    bool lost = false;
    cluster.spoil({.refused = true}, [&](const Daemon&, const Effect& e) {
      return std::holds_alternative<DestroySession>(e) && !std::exchange(lost, true);
    });
    CHECK(cluster.run_until([&] { return a.stopped; }, 1s));
    CHECK(cluster.store.sessions() == 0);
    cluster.run_for(1min);
    CHECK(all<Stopped>(a).size() == 1);
  }
}

TEST_CASE("a stop waits for the jobs of a lock that is lost before it, or meanwhile") {
  for (const bool stops_first : {false, true}) {
    Two two;
    two.cluster.stopping = [](Duration grace) { return grace; };
    two.cluster.put_and_run("1", 1s);
    if (stops_first) two.cluster.tell(two.a, StopRequested{});
    two.cluster.kill_session();
    two.cluster.run_for(100ms);
    if (!stops_first) two.cluster.tell(two.a, StopRequested{});
    two.cluster.run_for(3500ms);
    CHECK(two.cluster.running() == 1);
    CHECK_FALSE(two.a.stopped);
    two.cluster.run_for(5s);
    CHECK(two.a.stopped);
  }
}

}  // namespace lictor::core::test
