#include <doctest/doctest.h>

#include "unit/consul_replies.h"
#include "unit/contains.h"
#include "wire/consul.h"
#include "wire/fleet.h"
#include "wire/transaction_plan.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::unit;
using namespace lictor::wire;

namespace {

const Layout kLayout = Layout::under("l/", "q");

// Every answer after which a write may have landed, or may land yet.
const http::Response kUnknowns[] = {
    undelivered(http::Delivery::kLost),
    undelivered(http::Delivery::kCancelled),
    reply(500, "rpc error making call: EOF"),
    reply(500, "rpc error making call: stream closed"),
    reply(500, "leadership lost while committing log"),
    reply(500, "No cluster leader"),
    reply(500, "node is not the leader"),
    reply(502, ""),
    reply(503, ""),
    reply(504, ""),
    reply(301, ""),
    reply(200, "<html>a proxy"),
    reply(200, "{}"),
};
// Every answer after which a write has not landed and will not.
const http::Response kRefusals[] = {
    undelivered(http::Delivery::kNotSent),
    reply(400, "Failed to parse body: json: unknown field"),
    reply(403, "Permission denied"),
    reply(403, "ACL not found"),
    reply(413, "Transaction contains too many operations (65 > 64)"),
    reply(429, ""),
    reply(503,
          "rate limit exceeded for operation that can only be performed by the leader, try again"
          " later"),
};

// Answers to a transaction that reads, after which nothing is known.
const http::Response kNothingRead[] = {
    failed("Permission denied"),
    failed("doesn't exist", 9),
    failed(std::vector<std::pair<std::string, std::size_t>>{}),
    reply(200, "{"),
    reply(500, "node is not the leader"),
    undelivered(http::Delivery::kLost),
};

// The one failed operation of a commit.
Committed::Failure only_failure(const Commit& commit, const http::Response& response) {
  const auto committed = decode(commit, response);
  CHECK(committed.outcome == Outcome::kRejected);
  REQUIRE(committed.failures.size() == 1);
  return committed.failures[0];
}

Commit some_commit() {
  BuryOp bury{
      .key = "l/q/tasks/c", .index = 9, .record = std::make_shared<const std::string>("{}")};
  return {
      .request = RequestId{7},
      .session = "s",
      .ops = {RestampOp{"l/q/tasks/a", 7, bury.record, {}, 0}, bury, FinishOp{"l/q/tasks/b", 8}}};
}

}  // namespace

TEST_CASE("a session's creation") {
  const CreateSession effect{RequestId{3}};
  const auto made = decode(effect, reply(200, R"({"ID":"adf4238a-882b-9ddc"})"));
  CHECK(made.request == RequestId{3});
  CHECK(made.outcome == Outcome::kApplied);
  CHECK(made.session == "adf4238a-882b-9ddc");
  for (const auto& r : kUnknowns) CHECK(decode(effect, r).outcome == Outcome::kUnknown);
  for (const auto& r : kRefusals) CHECK(decode(effect, r).outcome == Outcome::kRejected);
  for (const char* text : {"Missing node registration", "Missing check 'serfHealth' registration",
                           "Check 'app' is in critical state",
                           "Invalid Session TTL '9999000000', must be between [10s=24h0m0s]"}) {
    CHECK(decode(effect, reply(500, text)).outcome == Outcome::kRejected);
  }
  const auto said = [&](int status, const std::string& text) {
    http::Response response = reply(status, text);
    response.endpoint.clear();
    return decode(effect, response).error;
  };
  CHECK(said(403, "Permission denied") ==
        R"(Consul answered 403 (Permission denied); the token needs the rule session "NODE" )"
        R"({ policy = "write" }, NODE being the node of the Consul agent; see "lictor check")");
  CHECK(said(403, "ACL not found") == "Consul answered 403 (ACL not found)");
  CHECK(said(404, "404 page not found") ==
        "Consul answered 404 (404 page not found); is this a Consul agent?");
  CHECK(decode(effect, undelivered(http::Delivery::kLost)).error == "reset");
}

TEST_CASE("a session's renewal and destruction") {
  using Answer = SessionRenewed::Answer;
  const RenewSession effect{RequestId{3}, "s"};
  CHECK(decode(effect, reply(200, R"([{"ID":"s","TTL":"10s"}])")).answer == Answer::kAlive);
  CHECK(decode(effect, reply(404, "Session id 's' not found")).answer == Answer::kGone);
  for (const auto& r :
       {reply(500, "rpc error"), reply(403, "Permission denied"), reply(429, ""),
        undelivered(http::Delivery::kLost), undelivered(http::Delivery::kNotSent)}) {
    CHECK(decode(effect, r).answer == Answer::kNothing);
  }
  const DestroySession destroy{RequestId{3}, "s"};
  CHECK(decode(destroy, reply(200, "true")).outcome == Outcome::kApplied);
  CHECK(decode(destroy, reply(500, "EOF")).outcome == Outcome::kUnknown);
  CHECK(decode(destroy, reply(403, "Permission denied")).outcome == Outcome::kRejected);
}

TEST_CASE("the lock") {
  using Answer = LockReplied::Answer;
  const AcquireLock effect{RequestId{3}, "s"};
  const auto won = decode(effect, applied({entry("l/q/leader", "", 234, "s")}));
  CHECK(won.answer == Answer::kAcquired);
  CHECK(won.modify_index == 234);
  const auto restored =
      decode(AcquireLock{RequestId{3}, "s", 234},
             applied({entry("l/q/leader", "", 234, "s"), entry("l/q/leader", "", 234, "s"),
                      entry("l/q/leader", "", 240, "s")}));
  CHECK(restored.answer == Answer::kAcquired);
  CHECK(restored.modify_index == 240);
  const auto lost = [&](const std::string& text) { return decode(effect, failed(text)).answer; };
  CHECK(lost(R"(failed to lock key \"lead\" due to lock delay)") == Answer::kLockDelay);
  CHECK(lost(R"(failed to lock key \"lead\", lock is already held)") == Answer::kHeld);
  CHECK(lost(R"(invalid session \"s\")") == Answer::kSessionGone);
  CHECK(lost("Permission denied") == Answer::kRefused);
  CHECK(lost("missing session") == Answer::kRefused);
  for (const char* text :
       {R"(failed index check for key \"lead\", current modify index 237 != 236)",
        R"(failed to check index, key \"lead\" doesn't exist)", R"(key \"lead\" exists)",
        R"(failed session check for key \"lead\", current session \"\" != \"s\")"}) {
    CHECK(lost(text) == Answer::kChanged);
  }
  // Consul reports both; that another session holds it is the better news.
  const auto raced =
      decode(effect, failed({{R"(failed index check for key \"lead\")", 0},
                             {R"(failed to lock key \"lead\", lock is already held)", 0}}));
  CHECK(raced.answer == Answer::kHeld);
  // A key's name is not the answer.
  CHECK(lost(R"(failed to lock key \"due to lock delay/lead\", lock is already held)") ==
        Answer::kHeld);
  for (const auto& r : kUnknowns) CHECK(decode(effect, r).answer == Answer::kUnknown);
  CHECK(decode(effect, undelivered(http::Delivery::kNotSent)).answer == Answer::kUnknown);
  CHECK(decode(effect, reply(403, "ACL not found")).answer == Answer::kRefused);
  CHECK(decode(effect, reply(429, "")).answer == Answer::kOverLimit);
  CHECK(decode(effect, reply(503, "rate limit exceeded")).answer == Answer::kOverLimit);
}

TEST_CASE("a read that Consul's limits refuse says so, since what was known holds") {
  const auto refused = reply(429, "Your IP is issuing too many concurrent connections");
  CHECK(decode(ReadLeader{}, refused).over_limit);
  CHECK(decode(WatchControl{}, refused).over_limit);
  CHECK(decode(Layout{}, ListTasks{}, refused).over_limit);
  ScheduleCache cache;
  CHECK(decode(Layout{}, ListSchedules{}, refused, cache).over_limit);
  CHECK(decode_locks(Binding{}, 1, refused).over_limit);
  CHECK_FALSE(decode(ReadLeader{}, reply(500, "EOF")).over_limit);
}

TEST_CASE("the lock's release") {
  const ReleaseLock effect{RequestId{3}, "s", 9};
  CHECK(decode(effect, applied({entry("l/q/leader", "", 235)})).outcome == Outcome::kApplied);
  CHECK(
      decode(effect,
             failed(R"(failed to unlock key \"k\", lock isn't held, or is held by another session)",
                    1))
          .outcome == Outcome::kRejected);
  CHECK(decode(effect, reply(500, "EOF")).outcome == Outcome::kUnknown);
  CHECK(decode(effect, undelivered(http::Delivery::kLost)).outcome == Outcome::kUnknown);
}

TEST_CASE("the leader key") {
  const ReadLeader effect{RequestId{3}, true, 0};
  const auto held = decode(effect, found({entry("l/q/leader", R"({"node":"host-a"})", 20, "s")}));
  CHECK(held.ok);
  CHECK(held.found);
  CHECK(held.session == "s");
  CHECK(held.holder == "host-a");
  CHECK(held.modify_index == 20);
  CHECK(held.consul_index == 21);
  CHECK(decode(effect, found({entry("l/q/leader", "me", 20, "s")})).holder == "session s");
  const auto released = decode(effect, found({entry("l/q/leader", "{}", 20)}));
  CHECK(released.found);
  CHECK(released.session.empty());
  const auto missing = decode(effect, reply(404, "", 30));
  CHECK(missing.ok);
  CHECK_FALSE(missing.found);
  // A path that does not exist is a 404 too, without an index.
  for (const auto& r : {reply(404, ""), reply(403, "Permission denied"), reply(500, "EOF"),
                        reply(200, "[]"), reply(200, "true"), undelivered(http::Delivery::kLost)}) {
    CHECK_FALSE(decode(effect, r).ok);
  }
}

TEST_CASE("the operator's switches") {
  const WatchControl effect{RequestId{3}, 0};
  const auto control = [&](const std::string& value) {
    return decode(effect, found({entry("l/q/control", value, 20)}));
  };
  CHECK(control("{}").ok);
  CHECK_FALSE(control("{}").paused);
  CHECK(control(R"({"paused":true})").paused);
  CHECK_FALSE(control(R"({"paused":false})").paused);
  CHECK_FALSE(control(R"({"paused":null})").paused);
  CHECK(control(R"({"paused":{"by":"ann"}})").paused);
  CHECK(control(R"({"paused":{"by":"ann"}})").by == "ann");
  CHECK(control(R"({"step_down":{"id":"x1","by":"ann"}})").step_down == "x1");
  CHECK(control(R"({"step_down":{"id":"x1","by":"ann"}})").by == "ann");
  CHECK(control("nonsense").error == "expected a JSON object, got nonsense");
  CHECK(decode(effect, reply(404, "", 9)).ok);
  CHECK_FALSE(decode(effect, reply(404, "", 9)).found);
  CHECK_FALSE(decode(effect, reply(403, "Permission denied")).ok);
}

TEST_CASE("the names of the tasks") {
  const ListTasks names{RequestId{3}, 0};
  const auto listed =
      decode(kLayout, names, reply(200, R"(["l/q/tasks/","l/q/tasks/a","l/q/tasks/f/"])", 22));
  CHECK(listed.ok);
  CHECK(listed.marker);
  REQUIRE(listed.keys.size() == 1);
  CHECK(listed.keys.in_order().front() == "l/q/tasks/a");
  CHECK(listed.folders == std::vector<std::string>{"l/q/tasks/f/"});

  const auto none = decode(kLayout, names, reply(404, "", 22));
  CHECK(none.ok);
  CHECK_FALSE(none.marker);  // empty, or not readable
  CHECK(decode(kLayout, names, reply(403, "Permission denied")).denied);
  for (const auto& r : {reply(404, ""), reply(403, "ACL not found"), reply(500, "EOF"),
                        reply(200, "<html>"), undelivered(http::Delivery::kLost)}) {
    CHECK_FALSE(decode(kLayout, names, r).ok);
  }
}

TEST_CASE("versions that are no longer there") {
  const CheckTasks effect{RequestId{3}, {{"l/q/tasks/a", 20}, {"l/q/tasks/b", 21}}};
  const auto same =
      decode(effect, applied({entry("l/q/tasks/a", "", 20), entry("l/q/tasks/b", "", 21)}));
  CHECK(same.ok);
  CHECK(same.changed.empty());
  CHECK(same.missing.empty());
  const std::string stale =
      R"(failed index check for key \"l/q/tasks/a\", current modify index 237 != 20)";
  const std::string gone = R"(failed to check index, key \"l/q/tasks/b\" doesn't exist)";
  const auto other = decode(effect, failed({{stale, 0}, {gone, 1}}));
  CHECK(other.ok);
  CHECK(other.changed == std::vector<std::string>{"l/q/tasks/a"});
  CHECK(other.missing == std::vector<std::string>{"l/q/tasks/b"});
  CHECK(decode(effect, failed("Permission denied")).denied);
  CHECK(decode(effect, reply(403, "ACL not found")).denied);
  for (const auto& r : kNothingRead) CHECK_FALSE(decode(effect, r).ok);
}

TEST_CASE("single tasks") {
  const FetchTasks effect{RequestId{3}, {"l/q/tasks/a", "l/q/tasks/b"}};
  const auto both = decode(
      kLayout, effect,
      applied({entry("l/q/tasks/a", R"({"taskType":"T"})", 20), entry("l/q/tasks/b", "soon", 21)}));
  CHECK(both.ok);
  CHECK(both.records.size() == 2);
  CHECK(both.missing.empty());

  const auto missing = decode(kLayout, effect, failed(R"(key \"l/q/tasks/b\" doesn't exist)", 1));
  CHECK(missing.ok);
  CHECK(missing.records.empty());
  CHECK(missing.missing == std::vector<std::string>{"l/q/tasks/b"});
  // A get without the right to read is left out: that is not "missing".
  const auto one = decode(kLayout, effect, applied({entry("l/q/tasks/a", "{}", 20)}));
  CHECK(one.ok);
  CHECK(one.records.size() == 1);
  CHECK(one.missing.empty());
  // Folders are no tasks; one that holds something is reported.
  const FetchTasks folders{RequestId{3}, {"l/q/tasks/f/", "l/q/tasks/g/"}};
  const auto told = decode(
      kLayout, folders, applied({entry("l/q/tasks/f/", "x", 20), entry("l/q/tasks/g/", "", 21)}));
  CHECK(told.records.empty());
  CHECK(told.folders == std::vector<std::string>{"l/q/tasks/f/"});
  CHECK(told.missing == std::vector<std::string>{"l/q/tasks/g/"});
  for (const auto& r : kNothingRead) CHECK_FALSE(decode(kLayout, effect, r).ok);
}

TEST_CASE("a commit is applied, rejected, or unknown, and nothing between") {
  const Commit commit = some_commit();
  const auto done =
      decode(commit, applied({entry("l/q/leader", "", 11, "s"), entry("l/q/tasks/a", "", 42)}));
  CHECK(done.request == RequestId{7});
  CHECK(done.outcome == Outcome::kApplied);
  CHECK(done.modify_index == 42);
  for (const auto& r : kUnknowns) {
    CAPTURE(r.body);
    CHECK(decode(commit, r).outcome == Outcome::kUnknown);
    CHECK_FALSE(decode(commit, r).error.empty());
  }
  for (const auto& r : kRefusals) CHECK(decode(commit, r).outcome == Outcome::kRejected);
  const auto denied = only_failure(commit, reply(403, "ACL not found"));
  CHECK(denied.op == Committed::kFence);
  CHECK(denied.why == OpFailure::kDenied);
}

TEST_CASE("a conflict that names no operation is no answer of Consul's") {
  for (const char* body : {"{}", "[]", R"({"Results":null,"Errors":null})"}) {
    CAPTURE(body);
    const auto committed = decode(Commit{RequestId{1}, "s", {}}, reply(409, body));
    CHECK(committed.outcome == Outcome::kUnknown);
    CHECK_FALSE(committed.error.empty());
    const auto lock = decode(AcquireLock{RequestId{1}, "s"}, reply(409, body));
    CHECK(lock.answer == LockReplied::Answer::kUnknown);
    CHECK_FALSE(lock.error.empty());
  }
}

TEST_CASE("the bucket of rate_limit is read as a claim writes it") {
  const WallTime at{std::chrono::milliseconds{1'764'322'210'123}};
  const auto read = [](const std::string& value) {
    return decode(ReadRate{RequestId{1}}, found({entry("l/q/rate", value, 7)}, 9));
  };
  CHECK(read(bucket_text(at)).ok);
  CHECK(read(bucket_text(at)).modify_index == 7);
  CHECK(read(bucket_text(at)).full_at == at);
  for (const char* nonsense : {"", "{}", "[]", R"({"fullAt":"soon"})", "\xff"}) {
    CHECK(read(nonsense).ok);
    CHECK(read(nonsense).modify_index == 7);
    CHECK_FALSE(read(nonsense).full_at);
  }
  const auto missing = decode(ReadRate{RequestId{1}}, reply(404, "", 9));
  CHECK(missing.ok);
  CHECK(missing.modify_index == 0);
  const auto denied = decode(ReadRate{RequestId{1}}, reply(403, "Permission denied", 0));
  CHECK(denied.denied);
  CHECK_FALSE(denied.ok);
}

TEST_CASE("a claim whose bucket has changed differs from one whose task has changed") {
  Commit commit{RequestId{1}, "s", {}};
  RestampOp claim{"l/q/tasks/a", 7, std::make_shared<const std::string>("{}"), {}, 0};
  claim.rate = RateMark{5, {}};
  commit.ops = {claim};
  const auto part_of = [&](std::size_t op) {
    const auto failure = only_failure(commit, failed("failed to set key, index is stale", op));
    CHECK(failure.why == OpFailure::kStale);
    return failure.part;
  };
  CHECK(part_of(1) == Committed::Part::kTask);
  CHECK(part_of(2) == Committed::Part::kRate);
}

TEST_CASE("a history takes in no keys from elsewhere") {
  const auto listed = decode(kLayout, ListHistory{RequestId{1}},
                             found({entry("x", "{}", 3), entry("l/q/done/1", "{}", 4)}, 9));
  REQUIRE(listed.ok);
  REQUIRE(listed.entries.size() == 1);
  CHECK(listed.entries.front().key == "l/q/tasks/1");
}

TEST_CASE("schedules are read once a version, and a faulty one beside the others") {
  ScheduleCache cache;
  const std::string good = R"({"every":"1h","task":{"taskType":"T"},"lastTask":"good@x"})";
  const std::string body =
      list_of({entry("l/q/schedules/", "", 2), entry("l/q/schedules/bad", "{}", 3),
               entry("l/q/schedules/good", good, 4)});
  const ListSchedules asked{RequestId{1}, 5};
  const auto listed = decode(kLayout, asked, reply(200, body, 9), cache);
  REQUIRE(listed.ok);
  CHECK(listed.marker);
  CHECK(listed.consul_index == 9);
  REQUIRE(listed.entries.size() == 2);
  CHECK(listed.entries[0].definition == nullptr);
  CHECK(contains(listed.entries[0].error, "expected one of cron, every and at"));
  const auto& entry = listed.entries[1];
  CHECK(entry.name == "good");
  CHECK(entry.tasks_prefix == "l/q/tasks/");
  CHECK(entry.last_task_key == "l/q/tasks/good@x");
  CHECK(entry.modify_index == 4);
  REQUIRE(entry.definition);
  const auto again = decode(kLayout, asked, reply(200, body, 10), cache);
  CHECK(again.entries.at(1).definition == entry.definition);
  cache.forget();
  CHECK(decode(kLayout, asked, reply(200, body, 11), cache).entries.at(1).definition !=
        entry.definition);
  const auto unchanged = decode(kLayout, asked, reply(200, body, 5), cache);
  CHECK(unchanged.ok);
  CHECK(unchanged.unchanged);
  CHECK(decode(kLayout, asked, reply(404, "", 6), cache).ok);
  CHECK_FALSE(decode(kLayout, asked, reply(404, "", 6), cache).marker);
  CHECK_FALSE(decode(kLayout, asked, reply(403, "Permission denied"), cache).ok);
  CHECK_FALSE(decode(kLayout, asked, reply(200, "[{]", 7), cache).error.empty());
}

TEST_CASE("an operator's switches that cannot be read pause the queue, an empty value none") {
  const auto read = [](const std::string& value) {
    return decode(WatchControl{RequestId{1}, 0}, found({entry("l/q/control", value, 3)}, 9));
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& value :
       {std::string{"nonsense"}, std::string{"[]"}, std::string{R"({"paused": treu})"},
        std::string{R"({"paused": "yes"})"}, R"({"paused": )" + deep + "}"}) {
    CAPTURE(value.substr(0, 40));
    const auto control = read(value);
    CHECK(control.ok);
    CHECK(control.unreadable);
    CHECK(control.paused);
    CHECK(control.by.starts_with("a control key that cannot be read (expected") !=
          control.by.starts_with("a control key that cannot be read (paused: expected"));
  }
  const auto empty = read("");
  CHECK(empty.ok);
  CHECK_FALSE(empty.unreadable);
  CHECK_FALSE(empty.paused);
}

TEST_CASE("a rejected commit names the failed operation, and why it failed") {
  // Places in some_commit(): 0 the fence, 1 the restamp, 2 to 4 the dead letter, 5 the finish.
  struct Row {
    std::string text;
    std::size_t index;
    std::size_t op;
    OpFailure why;
    Committed::Part part;
  };
  using Part = Committed::Part;
  using enum OpFailure;
  constexpr auto kFence = Committed::kFence;
  const Row table[] = {
      {R"(failed session check for key \"t/lead\", current session \"a\" != \"b\")", 0, kFence,
       kNotLeader, Part::kTask},
      {R"(failed session check for key \"t/x\", current session \"\" != \"b\")", 0, kFence,
       kNotLeader, Part::kTask},
      {R"(failed to check session, key \"t/none\" doesn't exist)", 0, kFence, kNotLeader,
       Part::kTask},
      {"Permission denied", 0, kFence, kDenied, Part::kTask},
      {R"(failed to set key \"t/x\", index is stale)", 1, 0, kStale, Part::kTask},
      {"Permission denied", 1, 0, kDenied, Part::kTask},
      {R"(failed index check for key \"t/x\", current modify index 237 != 236)", 2, 1, kStale,
       Part::kTask},
      {R"(failed to check index, key \"t/none\" doesn't exist)", 2, 1, kStale, Part::kTask},
      {R"(failed to set key \"dead/x\", index is stale)", 3, 1, kStale, Part::kDeadLetter},
      {"Permission denied", 3, 1, kDenied, Part::kDeadLetter},
      {R"(failed to delete key \"t/x\", index is stale)", 4, 1, kStale, Part::kTask},
      {R"(failed to delete key \"t/x\", index is stale)", 5, 2, kStale, Part::kTask},
      {R"(failed to delete key \"Permission denied\", index is stale)", 5, 2, kStale, Part::kTask},
      {R"(unknown KV verb \"CAS\")", 5, 2, kOther, Part::kTask},
      {R"(key \"an index is stale\" exists)", 5, 2, kOther, Part::kTask},
  };
  for (const Row& row : table) {
    CAPTURE(row.text);
    CAPTURE(row.index);
    const auto failure = only_failure(some_commit(), failed(row.text, row.index));
    CHECK(failure.op == row.op);
    CHECK(failure.why == row.why);
    CHECK(failure.part == row.part);
  }
}

TEST_CASE("a fence that refuses names its partition; another number of partitions, all of them") {
  Commit commit = some_commit();
  commit.partitions = {3, 12};
  commit.partition_count = 16;
  commit.count_index = 9;
  const auto lost =
      only_failure(commit, failed(R"(failed session check for key \"l\", current)", 1));
  CHECK(lost.op == Committed::kFence);
  CHECK(lost.why == OpFailure::kNotLeader);
  CHECK(lost.partition == 12);
  for (const char* text : {R"(failed index check for key \"p\", current modify index 10 != 9)",
                           R"(failed to check index, key \"p\" doesn't exist)"}) {
    const auto changed = decode(commit, failed(text, 2));
    REQUIRE(changed.failures.size() == 2);
    for (const auto& failure : changed.failures) CHECK(failure.why == OpFailure::kNotLeader);
    CHECK(changed.failures[0].partition == 3);
    CHECK(changed.failures[1].partition == 12);
  }
  const std::string stale = R"(failed to set key \"t/x\", index is stale)";
  CHECK(only_failure(commit, failed(stale, 99)).why != OpFailure::kNotLeader);
  CHECK(only_failure(commit, failed(stale, 3)).op == 0);
}

TEST_CASE("a dead letter whose task is gone failed for that, not for its name") {
  const auto failure =
      only_failure(some_commit(), failed({{R"(failed to check index, key \"c\" doesn't exist)", 2},
                                          {R"(failed to set key \"dead/c\", index is stale)", 3}}));
  CHECK(failure.op == 1);
  CHECK(failure.part == Committed::Part::kTask);
  const auto all =
      decode(some_commit(),
             failed({{R"(failed session check for key \"l\", current session \"\" != \"s\")", 0},
                     {R"(failed to set key \"a\", index is stale)", 1},
                     {R"(failed to set key \"dead/c\", index is stale)", 3}}));
  CHECK(all.failures.size() == 3);
}

TEST_CASE("a job's write that failed differs from its task that is gone") {
  Commit commit = some_commit();
  FinishOp finish{"l/q/tasks/b", 8};
  finish.writes = {{"app/x", "1", false, 7}, {"app/y", "2", false, {}}};
  commit.ops = {commit.ops[0], finish};  // 0 fence, 1 restamp, 2 look, 3 and 4 writes, 5 finish
  using Part = Committed::Part;
  const auto of = [&](const std::string& text, std::size_t index) {
    const auto failure = only_failure(commit, failed(text, index));
    CHECK(failure.op == 1);
    return std::pair{failure.why, failure.part};
  };
  CHECK(of(R"(failed index check for key \"b\", current modify index 9 != 8)", 2) ==
        std::pair{OpFailure::kStale, Part::kTask});
  CHECK(of(R"(failed to set key \"app/x\", index is stale)", 3) ==
        std::pair{OpFailure::kStale, Part::kJobWrite});
  CHECK(of("Permission denied", 4) == std::pair{OpFailure::kDenied, Part::kJobWrite});
  CHECK(of(R"(failed to delete key \"b\", index is stale)", 5) ==
        std::pair{OpFailure::kStale, Part::kTask});
  const auto both =
      only_failure(commit, failed({{R"(failed to check index, key \"b\" doesn't exist)", 2},
                                   {R"(failed to set key \"app/x\", index is stale)", 3}}));
  CHECK(both.part == Part::kTask);
}

TEST_CASE("a transaction refused as a whole says whether its content is at fault") {
  const auto why = [](int status, const std::string& body = "no") {
    const auto failure = only_failure(some_commit(), reply(status, body));
    CHECK(failure.op == Committed::kFence);
    return failure.why;
  };
  CHECK(why(413) == OpFailure::kTooLarge);
  CHECK(why(400) == OpFailure::kMalformed);
  CHECK(why(403) == OpFailure::kDenied);
  CHECK(why(429) == OpFailure::kOther);
  CHECK(why(500, "Invalid key in transaction: /x") == OpFailure::kMalformed);
}

TEST_CASE("a refusal for too many operations says how many there may be") {
  const auto refused = [](const std::string& numbers) {
    return reply(413, "Transaction contains too many operations " + numbers);
  };
  const Commit commit{RequestId{5}, "s", {FinishOp{"t/a", 8}}};
  const FetchTasks fetch{RequestId{6}, {"t/a"}};
  CHECK(decode(commit, refused("(65 > 64)")).most_operations == 64);
  CHECK(decode(commit, refused("(129 > 128)")).most_operations == 128);
  CHECK(decode(commit, refused("(65 > 64)")).outcome == Outcome::kRejected);
  CHECK(decode(Layout{}, fetch, refused("(65 > 64)")).most_operations == 64);
  CHECK_FALSE(decode(Layout{}, fetch, refused("(65 > 64)")).ok);
  const CheckTasks check{RequestId{7}, {{"t/a", 8}}};
  CHECK(decode(check, refused("(65 > 64)")).most_operations == 64);
  for (const char* odd : {"(128 > 6", "(65 > many)", "(65)", "(", "(65 > 0)"}) {
    CHECK(decode(commit, refused(odd)).most_operations == limits::kLeastOperations);
  }
  CHECK(decode(commit, reply(413, "Request body(524289 bytes) too large")).most_operations == 0);
  CHECK(decode(commit, reply(400, "too many operations (65 > 64)")).most_operations == 0);
}

TEST_CASE("a lock that is refused for the number of partitions is not the lock of another") {
  using Answer = LockReplied::Answer;
  const auto answer = [](const AcquireLock& lock, const std::string& text, std::size_t index) {
    return decode(lock, failed(text, index)).answer;
  };
  AcquireLock lock{RequestId{5}, "s"};
  CHECK(answer(lock, R"(key \"l/q/leader\" exists)", 0) == Answer::kChanged);
  lock.if_single = true;
  CHECK(answer(lock, R"(key \"l/q/partitions\" exists)", 0) == Answer::kCountChanged);
  CHECK(answer(lock, R"(key \"l/q/leader\" exists)", 1) == Answer::kChanged);
  CHECK(answer(lock, "Permission denied", 0) == Answer::kRefused);
  lock.if_single = false;
  lock.count_index = 9;
  CHECK(answer(lock, R"(failed index check for key \"l/q/partitions\", current)", 0) ==
        Answer::kCountChanged);
}
