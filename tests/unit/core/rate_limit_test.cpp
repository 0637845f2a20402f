// The rate of taking tasks: the limit is the queue's, whoever leads.

#include <algorithm>

#include <doctest/doctest.h>

#include "alone.h"
#include "wire/transaction_plan.h"

namespace lictor::core::test {
namespace {

// When jobs started, in order; from now on.
struct Starts : std::vector<Instant> {
  explicit Starts(Cluster& cluster) {
    cluster.plan = [this, &cluster](const Task&) {
      push_back(cluster.now);
      return JobPlan{.after = 1ms, .error = {}};
    };
  }
};

std::size_t count_within(const std::vector<Instant>& starts, Instant from, Duration span) {
  return static_cast<std::size_t>(std::count_if(starts.begin(), starts.end(), [&](Instant start) {
    return start >= from && start < from + span;
  }));
}

std::size_t bucket_reads(const Daemon& daemon) { return all<ReadRate>(daemon).size(); }

TEST_CASE("another host goes on with the bucket, and does not wait when it is full") {
  Two two{options_with([](QueueOptions& o) { o.rate_limit = Rate{10s, 3}; })};
  Starts starts{two.cluster};
  for (int i = 0; i < 5; ++i) two.cluster.put(std::to_string(i));
  two.cluster.run_for(1s);
  CHECK(starts.size() == 3);
  two.cluster.tell(two.a, StopRequested{});
  two.until_leader(*two.b);
  CHECK(two.cluster.run_until([&] { return starts.size() == 5; }, 25s));
  CHECK(starts[3] - starts[0] >= 10s - 10ms);
  CHECK(starts[4] - starts[0] >= 20s - 10ms);
  two.cluster.run_for(1min);
  two.cluster.put("x");
  CHECK(two.cluster.run_until([&] { return starts.size() == 6; }, 100ms));
}

TEST_CASE("a rate costs one read a term, and no request or transaction a claim") {
  QueueOptions options = options_of("a");
  const auto commits = [](const QueueOptions& of) {
    Alone a{of};
    a.all_end_after(1ms);
    const std::size_t before = all<Commit>(a.daemon).size();
    for (int i = 0; i < 10; ++i) {
      a.cluster.put(std::to_string(i));
      CHECK(a.cluster.run_until([&] { return a.idle(); }, 10s));
    }
    CHECK(bucket_reads(a.daemon) == (of.rate_limit ? 1 : 0));
    return all<Commit>(a.daemon).size() - before;
  };
  const std::size_t without = commits(options);
  options.rate_limit = Rate{1ms, 10};
  CHECK(commits(options) == without);
}

TEST_CASE("a burst takes two round trips, not one for each task") {
  QueueOptions options = options_of("a");
  options.rate_limit = Rate{1s, 50};
  options.concurrency = 50;
  Alone a{options};
  Starts starts{a.cluster};
  a.cluster.exclusive = false;
  a.cluster.pause_and_run(true, 1s);
  for (int i = 0; i < 60; ++i) a.cluster.put(std::to_string(i));
  a.cluster.run_for(1s);
  a.cluster.store.control(false, "");
  CHECK(a.cluster.run_until([&] { return starts.size() == 50; }, 100ms));
  a.cluster.run_for(500ms);
  CHECK(starts.size() == 50);
}

TEST_CASE("several leaders take from one bucket, and each gets its turn") {
  Cluster cluster;
  cluster.exclusive = false;
  cluster.store.make_partitions(4);
  for (const char* node : {"a", "b"}) {
    QueueOptions options = options_of(node);
    options.partitions = 4;
    options.partitions_index = 7;
    options.rate_limit = Rate{1s, 2};
    cluster.add(options);
  }
  Starts starts{cluster};
  cluster.run_for(1min);  // both lead
  for (int i = 0; i < 400; ++i) cluster.put(std::to_string(i));
  const Instant from = cluster.now;
  cluster.run_for(1min);
  for (Duration at{}; at < 50s; at += 100ms) {
    CHECK(count_within(starts, from + at, 10s) <= 12);
  }
  CHECK(starts.size() >= 50);
  for (const auto& daemon : cluster.daemons()) {
    CHECK(all<StartJob>(*daemon).size() >= 10);
    CHECK(bucket_reads(*daemon) < 200);
  }
}

TEST_CASE("what a claim takes of a high rate is not rounded away") {
  Alone a{options_with([](QueueOptions& o) { o.rate_limit = Rate{300us, 100}; })};
  a.cluster.put_and_run("1", 10ms);
  const auto claim = std::get<RestampOp>(all<Commit>(a.daemon).back().ops.front());
  CHECK(claim.rate->full_at > claim.stamp.claim->since);
}

TEST_CASE("a clock that was days ahead stops the queue for as long as the bucket takes to fill") {
  Alone a{options_with([](QueueOptions& o) { o.rate_limit = Rate{10s, 2}; })};
  Starts starts{a.cluster};
  a.cluster.store.write("rate", wire::bucket_text(a.cluster.wall() + 48h));
  for (int i = 0; i < 3; ++i) a.cluster.put(std::to_string(i));
  CHECK(a.cluster.run_until([&] { return starts.size() == 3; }, 31s));
  CHECK(starts.front() - (a.cluster.now - 30s) >= 0s);
}

TEST_CASE("without the right to the key each leader counts by itself, and says so once") {
  for (const bool may_read : {true, false}) {
    Alone a{options_with([](QueueOptions& o) { o.rate_limit = Rate{1s, 1}; })};
    Starts starts{a.cluster};
    auto& rights = may_read ? a.cluster.store.no_right : a.cluster.store.unreadable;
    rights.insert("rate");
    for (int i = 0; i < 100; ++i) a.cluster.put(std::to_string(i));
    a.cluster.run_for(90500ms);
    CHECK(starts.size() >= 89);
    CHECK(starts.size() <= 92);
    CHECK(count(a.daemon, Fact::Kind::kDenied) == 1);
    // Once the right is granted, it is used.
    rights.clear();
    CHECK(a.cluster.run_until([&] { return a.idle(); }, 30s));
    a.cluster.run_for(1min);
    a.cluster.put_and_run("x", 1s);
    CHECK(a.cluster.store.has("rate"));
  }
}

TEST_CASE("a rate holds over restarts of its leader, orderly ones and crashes") {
  Alone a{options_with([](QueueOptions& o) { o.rate_limit = Rate{10s, 1}; })};
  Starts starts{a.cluster};
  for (int i = 0; i < 20; ++i) a.cluster.put(std::to_string(i));
  for (int i = 0; i < 12; ++i) {
    a.cluster.run_for(2s);
    if (i % 3 == 2) {
      a.cluster.crash(a.daemon);
    } else {
      a.cluster.tell(a.daemon, StopRequested{});
    }
    a.cluster.restart_after(a.daemon, 10ms);
  }
  a.cluster.run_until([&] { return starts.size() == 4; }, 2min);
  REQUIRE(starts.size() == 4);
  for (std::size_t i = 1; i < starts.size(); ++i) CHECK(starts[i] - starts[i - 1] >= 10s - 10ms);
  CHECK(starts.back() - starts.front() < 1min);
}

}  // namespace
}  // namespace lictor::core::test
