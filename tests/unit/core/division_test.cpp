#include "core/leadership/division.h"

#include <doctest/doctest.h>

#include "alone.h"

namespace lictor::core::test {
namespace {

FleetMember member(const std::string& id, std::uint32_t desired_partitions) {
  return {{id}, desired_partitions};
}

bool serves(const DivisionActs& acts) {
  return std::any_of(acts.begin(), acts.end(), [](const DivisionAct& act) {
    return std::holds_alternative<ServeQueue>(act);
  });
}

// The state of a queue that host c wants in three partitions.
FleetRead fleet(std::optional<std::uint32_t> count = {}, std::uint64_t count_index = 0) {
  FleetRead read;
  read.members = {member("c", 3)};
  read.count = count;
  read.count_index = count_index;
  return read;
}

// Host c.
struct Host {
  explicit Host(std::uint32_t wanted = 3) : division("c", 1, wanted) {}
  // Its acts when it has read this, so much later.
  DivisionActs read(const FleetRead& fleet, Duration later = {}) {
    now += later;
    DivisionActs acts;
    division.on_time(now, service, acts);
    division.on(now, fleet, acts);
    return acts;
  }
  DivisionActs hear(DivisionReply::Answer answer, const std::string& error = {}) {
    DivisionActs acts;
    division.on(now, DivisionReply{answer, error}, acts);
    return acts;
  }

  Division division;
  Division::Service service{};
  Instant now{1h};
};

template <class Act>
bool ends_with(const DivisionActs& acts) {
  return !acts.empty() && std::holds_alternative<Act>(acts.back());
}

TEST_CASE("the number of partitions stays until all want the same") {
  CHECK(plan_change({member("a", 4), member("b", 8)}, member("a", 4), 8).to == 0);
  CHECK(plan_change({member("a", 8), member("b", 8)}, member("a", 8), 8).to == 0);
  // A host that is not listed yet counts.
  CHECK(plan_change({member("b", 4)}, member("a", 8), 8).to == 0);
  const CountChange alone = plan_change({}, member("a", 4), 8);
  CHECK(alone.to == 4);
  CHECK(alone.is_ours);
  CHECK(agreed_partitions({}) == 0);
  CHECK(alone.members == std::vector<BalancerMember>{{"a"}});
}

TEST_CASE("while the number changes, all hosts but the first by name give their partitions away") {
  const std::vector<FleetMember> members{member("b", 4), member("a", 4), member("c", 4)};
  for (const FleetMember& self : members) {
    CAPTURE(self.member.id);
    const CountChange change = plan_change(members, self, 8);
    CHECK(change.to == 4);
    CHECK(change.is_ours == (self.member.id == "a"));
    for (const BalancerMember& each : change.members) CHECK(each.draining == (each.id != "a"));
  }
}

TEST_CASE("a host that keeps its locks ends its jobs, claims nothing, and lets go when asked") {
  CheckedCluster cluster;
  cluster.exclusive = false;
  QueueOptions options = options_of("a");
  options.partitions = 3;
  options.partitions_index = cluster.store.make_partitions(3);
  options.concurrency = 2;
  Daemon& daemon = cluster.add(options);
  cluster.plan = [](const Task&) { return JobPlan{5s, JobEnding::kDone, {}}; };
  for (int i = 0; i < 6; ++i) cluster.put("t" + std::to_string(i));
  REQUIRE(cluster.run_until([&] { return cluster.running() == 2; }, 5s));
  cluster.tell(daemon, StopRequested{true});
  REQUIRE(cluster.run_until([&] { return !all<Drained>(daemon).empty(); }, 10s));
  CHECK(cluster.running() == 0);
  CHECK(cluster.started.size() == 2);
  CHECK(all<Drained>(daemon).front().session == cluster.store.leader_session(0));
  cluster.run_for(1min);  // it proves them
  for (std::uint32_t i = 0; i < 3; ++i) CHECK_FALSE(cluster.store.leader_session(i).empty());
  CHECK(cluster.started.size() == 2);
  cluster.tell(daemon, StopRequested{});
  REQUIRE(cluster.run_until([&] { return !daemon.queue; }, 5s));
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(cluster.store.leader_session(i).empty());
}

TEST_CASE("a number is served when no lock of another one is held, nor was just lost") {
  Host c;
  const auto serves_after = [&](Duration wait, const std::vector<FleetRead::Lock>& locks) {
    FleetRead read = fleet(3, 9);
    read.locks = locks;
    return serves(c.read(read, wait));
  };
  const auto lock = [](const std::string& key, const std::string& session, bool released) {
    FleetRead::Lock found{key, {}, 2};
    found.read.session = session;
    found.read.modify_index = session.empty() ? 8 : 7;
    found.read.released = released;
    return found;
  };
  const FleetRead::Lock a = lock("leader/2/0", "a", false), b = lock("leader/2/1", "b", false);
  const FleetRead::Lock lost = lock("leader/2/0", "", false),
                        released = lock("leader/2/1", "", true);
  CHECK_FALSE(serves_after(1s, {a, b}));
  CHECK_FALSE(serves_after(1min, {lost, b}));
  CHECK_FALSE(serves_after(5s, {lost, released}));
  CHECK_FALSE(serves_after(50s, {released}));  // its key was deleted
  CHECK(serves_after(6s, {released}));
}

// The locks of the new number are free at once: the old lock's lock-delay does not bar them.
TEST_CASE("a leader that was lost before the number changed is waited for") {
  Host c;
  REQUIRE(serves(c.read(fleet(3, 8))));
  c.service.locks_free_from = c.now + 30s;
  c.service.count_changed = c.service.stopped = true;
  CHECK_FALSE(serves(c.read(fleet(5, 10), 1s)));
  c.service = {};
  CHECK_FALSE(serves(c.read(fleet(5, 10), 28s)));
  CHECK(serves(c.read(fleet(5, 10), 2s)));
}

// Another client may just have deleted the number.
TEST_CASE("one partition is served when no lock of several is held, or it may not read them") {
  for (const bool may_read : {true, false}) {
    Host c{1};
    DivisionActs acts;
    c.division.on_time(c.now, {}, acts);
    REQUIRE(ends_with<ReadFleet>(c.hear(DivisionReply::Answer::kNo)));
    FleetRead read;
    if (may_read) {
      read.locks = {{"leader/2/0", {}, 2}};
      read.locks[0].read.session = "a";
      read.locks[0].read.modify_index = 7;
    } else {
      read.error = "Permission denied";
      read.refused = true;
    }
    c.division.on(c.now, read, acts);
    CHECK(ends_with<DivisionNote>(acts) == may_read);
    CHECK(ends_with<ProbeSingle>(acts) == !may_read);
    if (!may_read) CHECK(serves(c.hear(DivisionReply::Answer::kRefused)));
    if (!may_read) CHECK(ends_with<DivisionNote>(Host{}.read(read)));
  }
}

// A host that starts later would wait for the lost lock again, had it not been deleted.
TEST_CASE("a lost lock of another number is waited for once, and deleted") {
  using Answer = DivisionReply::Answer;
  for (const Answer answer : {Answer::kYes, Answer::kNo, Answer::kRefused, Answer::kUnknown}) {
    CAPTURE(static_cast<int>(answer));
    Host c;
    FleetRead read = fleet(3, 9);
    read.locks = {{"leader/2/0", {}, 2}, {"leader/3/0", {}, 3}};
    read.locks[0].read.modify_index = 8;
    read.locks[1].read.modify_index = 10;
    REQUIRE(ends_with<DivisionNote>(c.read(read, 1s)));
    const DivisionActs acts = c.read(read, 1min);
    REQUIRE(ends_with<DeleteLocks>(acts));
    const DeleteLocks& deletes = std::get<DeleteLocks>(acts.back());
    REQUIRE(deletes.locks.size() == 1);
    CHECK(deletes.locks[0].key == "leader/2/0");
    CHECK(c.hear(answer).empty());
    const auto next = c.read(read, 2s);
    CHECK(serves(next) == (answer == Answer::kRefused));
    CHECK(ends_with<DeleteLocks>(next) == !serves(next));
  }
}

TEST_CASE("a host that is second to write the number says nothing, and reads it") {
  using Answer = DivisionReply::Answer;
  for (const Answer answer : {Answer::kNo, Answer::kRefused, Answer::kUnknown}) {
    CAPTURE(static_cast<int>(answer));
    Host c;
    REQUIRE(ends_with<ProbeChange>(c.read(fleet())));
    static_cast<void>(c.hear(Answer::kYes));
    FleetRead others = fleet();
    others.members.push_back(member("d", 2));
    CHECK(ends_with<DivisionNote>(c.read(others)));  // not all want this number
    REQUIRE(ends_with<CreateCount>(c.read(fleet())));
    CHECK(c.hear(answer, "index is stale").empty() == (answer == Answer::kNo));
    CHECK(c.division.desired_partitions() == (answer == Answer::kRefused ? 1 : 3));
    DivisionActs acts;
    c.division.on_time(c.now + 1s, {}, acts);
    CHECK(ends_with<ReadFleet>(acts));
  }
}

// A rolling restart brings another serialize_by to one host after the other.
TEST_CASE("a host with another serialize_by waits until nobody has led for a while") {
  Host c;
  FleetRead others = fleet(3, 9);
  others.maps_otherwise = true;
  others.locks.push_back({"l/leader/3/1", {}, 3});
  LeaderRead& lock = others.locks.back().read;
  lock.session = "s";
  lock.holder = "a";
  lock.modify_index = 12;
  const auto waits = [&](Duration duration) {
    for (const Instant end = c.now + duration; c.now < end;) {
      const DivisionActs acts = c.read(others, 500ms);
      if (serves(acts) || ends_with<CreateCount>(acts)) return false;
    }
    return c.division.waits_for()->kind == DivisionNote::Kind::kMapsOtherwise;
  };
  CHECK(waits(20s));
  lock.session.clear();
  SUBCASE("while the lock-delay of a lost leader lasts") { CHECK(waits(kMostLockDelay)); }
  SUBCASE("not long after a leader that gave up its locks in order") { lock.released = true; }
  CHECK(waits(4s));
  ++others.count_index;  // another host was first: its locks come
  CHECK(waits(4s));
  CHECK_FALSE(waits(2s));
  CHECK(ends_with<DivisionNote>(c.hear(DivisionReply::Answer::kYes)));
  others.maps_otherwise = false;
  others.count_index = 20;
  if (!lock.released) {  // it is older than the number now
    CHECK(ends_with<DeleteLocks>(c.read(others, 1s)));
    static_cast<void>(c.hear(DivisionReply::Answer::kYes));
    others.locks.clear();
  }
  CHECK(serves(c.read(others, 1s)));
}

TEST_CASE("a lock that is older than the number is waited for") {
  Host c;
  FleetRead read = fleet(3, 9);
  read.locks.push_back({"l/leader/3/1", {}, 3});
  read.locks.back().read.session = "s";
  read.locks.back().read.modify_index = 8;
  CHECK_FALSE(serves(c.read(read)));
  read.locks.back().read.modify_index = 12;
  CHECK(serves(c.read(read, 1s)));
}

TEST_CASE("a number that a stranger removes each time is written again at a measured pace") {
  Host c;
  REQUIRE(ends_with<ProbeChange>(c.read(fleet())));
  DivisionActs acts = c.hear(DivisionReply::Answer::kYes);
  int created = 0;
  for (const Instant end = c.now + 10s; c.now < end; c.now += 1ms) {
    c.division.on_time(c.now, {}, acts);
    const DivisionActs asked = std::exchange(acts, {});
    if (ends_with<ReadFleet>(asked)) c.division.on(c.now, fleet(), acts);
    if (!ends_with<CreateCount>(asked)) continue;
    acts = c.hear(DivisionReply::Answer::kYes);
    ++created;
  }
  CHECK(created >= 5);
  CHECK(created <= 11);
}

// A Consul whose queue host c serves in two partitions and wants in three. All requests but the
// change succeed at once.
struct Changing : Host {
  // Carries out all acts for so long.
  void run_for(Duration duration) {
    for (const Instant end = now + duration; now < end; now += 1s) {
      DivisionActs acts;
      division.on_time(now, service, acts);
      for (std::size_t i = 0; i < acts.size(); ++i) carry_out(DivisionAct{acts[i]}, acts);
    }
  }
  void carry_out(const DivisionAct& act, DivisionActs& acts) {
    if (std::holds_alternative<ReadFleet>(act)) {
      FleetRead read = fleet(count, count ? index : 0);
      if (!other.member.id.empty()) read.members.push_back(other);
      division.on(now, read, acts);
    }
    if (std::holds_alternative<ProbeSingle>(act)) {
      division.on(now, DivisionReply{Answer::kYes, {}}, acts);
    }
    if (const auto* create = std::get_if<CreateCount>(&act)) {
      count = create->count;
      ++index;
      division.on(now, DivisionReply{Answer::kYes, {}}, acts);
    }
    if (std::holds_alternative<ProbeChange>(act)) {
      ++probes;
      division.on(now, DivisionReply{has_right ? Answer::kYes : Answer::kRefused, "no right"},
                  acts);
    }
    if (std::holds_alternative<ServeQueue>(act)) service = {.holds_all = true};
    if (const auto* end = std::get_if<EndService>(&act)) {
      ++ends;
      service.kept_by = end->keeps_locks ? std::optional<std::string>{"session"} : std::nullopt;
      service.stopped = !end->keeps_locks;
    }
    if (std::holds_alternative<DropService>(act)) service = {};
    if (const auto* change = std::get_if<ChangeCount>(&act)) {
      ++changes;
      if (answer == Answer::kYes) {
        count = change->to;
        ++index;
      }
      division.on(now, DivisionReply{answer, "too large"}, acts);
    }
    if (const auto* note = std::get_if<DivisionNote>(&act)) notes.push_back(note->kind);
  }
  [[nodiscard]] std::size_t noted(DivisionNote::Kind kind) const {
    return static_cast<std::size_t>(std::count(notes.begin(), notes.end(), kind));
  }

  using Answer = DivisionReply::Answer;
  Answer answer = Answer::kYes;  // to the change
  bool has_right = true;
  std::optional<std::uint32_t> count = 2;
  std::uint64_t index = 8;
  FleetMember other;  // none without a name
  std::size_t probes = 0, ends = 0, changes = 0;
  std::vector<DivisionNote::Kind> notes;
};

TEST_CASE("the number is changed when all locks are held, no job runs and no answer is awaited") {
  using Answer = DivisionReply::Answer;
  for (const bool holds_all : {true, false}) {
    Host c;
    const FleetRead two = fleet(2, 9);
    REQUIRE(serves(c.read(two)));
    REQUIRE(ends_with<ProbeChange>(c.read(two, 2s)));
    static_cast<void>(c.hear(Answer::kYes));
    static_cast<void>(c.read(fleet(2, 8)));  // an older answer
    CHECK(c.division.count() == 2);
    static_cast<void>(c.read(two, 2s));
    c.service.holds_all = true;
    const auto next = [&](Duration later) {
      c.now += later;
      DivisionActs acts;
      c.division.on_time(c.now, c.service, acts);
      return acts;
    };
    const auto end = next(0s);
    REQUIRE(ends_with<EndService>(end));
    CHECK(std::get<EndService>(end.back()).keeps_locks);
    REQUIRE(ends_with<ReadFleet>(next(2s)));
    c.service.kept_by = "session";
    c.service.holds_all = holds_all;
    CHECK(next(1ms).empty());
    DivisionActs acts;
    c.division.on(c.now, two, acts);
    acts = next(1ms);
    CHECK(ends_with<ChangeCount>(acts) == holds_all);
    CHECK(ends_with<EndService>(acts) != holds_all);
    c.division.stop();
    CHECK(c.hear(Answer::kYes).empty());
  }
}

TEST_CASE("a change that Consul refuses is tried ever more rarely, for each try stops all jobs") {
  Changing c;
  c.answer = DivisionReply::Answer::kRefused;
  c.run_for(6h);
  CHECK(c.changes >= 8);
  CHECK(c.changes <= 12);
  CHECK(c.ends <= 2 * c.changes);
  CHECK(c.noted(DivisionNote::Kind::kNotChanged) == c.changes);
  c.answer = DivisionReply::Answer::kYes;
  c.run_for(2h);
  CHECK(c.count == 3);
  CHECK(c.division.count() == 3);
  CHECK(c.division.desired_partitions() == 3);
}

TEST_CASE("without the right to change the number a host asks for what there is, once a minute") {
  Changing c;
  c.has_right = false;
  c.run_for(1h);
  CHECK(c.changes == 0);
  CHECK(c.ends == 0);
  CHECK(c.probes >= 55);
  CHECK(c.probes <= 61);
  CHECK(c.division.desired_partitions() == 2);
  CHECK(c.noted(DivisionNote::Kind::kMayNotChange) == 1);
  c.has_right = true;  // it comes without a word to the daemon
  c.run_for(2min);
  CHECK(c.division.count() == 3);
  // Another number is another right.
  c.division.reconfigure(c.now, 1, 5);
  CHECK(c.division.desired_partitions() == 3);
  c.run_for(10s);
  CHECK(c.division.count() == 5);
  CHECK(c.noted(DivisionNote::Kind::kFinishes) == 2);
}

TEST_CASE("a queue with one partition gets more once the right is there and all hosts want it") {
  Changing c;
  c.count.reset();
  c.has_right = false;
  c.other = member("d", 3);
  c.run_for(30s);
  CHECK(c.division.count() == 1);
  c.has_right = true;
  c.other = member("d", 2);
  c.run_for(5min);
  CHECK(c.division.count() == 1);  // d wants another number
  CHECK(c.ends == 0);
  CHECK(c.noted(DivisionNote::Kind::kNotDivided) == 1);
  c.other = member("d", 3);
  c.run_for(10s);
  CHECK(c.ends == 1);
  CHECK(c.division.count() == 3);
  CHECK(c.noted(DivisionNote::Kind::kDivided) == 1);
}

TEST_CASE("a leader of one partition notices a number that another client writes") {
  CheckedCluster cluster;
  cluster.exclusive = false;
  cluster.divides = true;
  const QueueOptions options = options_of("a");
  Daemon& daemon = cluster.add(options);
  cluster.plan = [](const Task&) { return JobPlan{50ms, JobEnding::kDone, {}}; };
  cluster.run_for(20s);
  REQUIRE(daemon.queue->holds_lock(0));
  cluster.store.make_partitions(3);
  cluster.run_for(15s);
  REQUIRE(daemon.queue);
  CHECK(daemon.options.partitions == 3);
  cluster.put("t");
  CHECK(cluster.run_until([&] { return !cluster.store.has_tasks(); }, 10s));
  CHECK(cluster.run_until([&] { return cluster.is_resized(); }, 1min));
}

}  // namespace
}  // namespace lictor::core::test
