#include <doctest/doctest.h>

#include "base/base64.h"
#include "base/time_text.h"
#include "wire/consul.h"
#include "wire/record.h"
#include "wire/schedule_record.h"

using namespace lictor;
using namespace lictor::core;
using namespace lictor::wire;
using namespace std::chrono_literals;

namespace {

const Binding kOurs{.layout = Layout::under("l/", "q"),
                    .queue = "q",
                    .node = "host \"a\"",
                    .leader_value = R"({"node":"a"})",
                    .session_ttl = 15s,
                    .lock_delay = 30s};

std::string text(const http::Request& r) {
  return r.method + ' ' + r.target + (r.body.empty() ? "" : ' ' + r.body);
}

std::shared_ptr<const std::string> bytes(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

}  // namespace

TEST_CASE("a session names its owner, and its durations have units") {
  Binding b = kOurs;
  CHECK(text(encode(b, CreateSession{})) ==
        R"(PUT /v1/session/create {"Name":"lictor q host \"a\"","TTL":"15s",)"
        R"("LockDelay":"30s","Behavior":"release","NodeChecks":["serfHealth"]})");
  b.session_checks.clear();
  CHECK(encode(b, CreateSession{}).body.ends_with(R"("NodeChecks":[]})"));
  b.session_checks = {"serfHealth", "disk"};
  CHECK(encode(b, CreateSession{}).body.ends_with(R"("NodeChecks":["serfHealth","disk"]})"));
  CHECK(text(encode(b, RenewSession{{}, "5e55-10"})) == "PUT /v1/session/renew/5e55-10");
  CHECK(text(encode(b, DestroySession{{}, "5e55-10"})) == "PUT /v1/session/destroy/5e55-10");
}

TEST_CASE("the lock is taken and released in a transaction, each at one index only") {
  const WallTime at{std::chrono::milliseconds{1'795'228'350'949}};
  const std::string lock =
      R"({"KV":{"Verb":"lock","Key":"l/q/leader","Session":"5e55","Value":")" +
      base64_encode(R"({"node":"a","lock_delay":"30s","since":"2026-11-21T02:32:30.949Z"})") +
      R"("}}])";
  CHECK(text(encode(kOurs, AcquireLock{{}, "5e55"}, at)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-not-exists","Key":"l/q/leader"}},)" + lock);
  CHECK(text(encode(kOurs, AcquireLock{{}, "5e55", 0, 76}, at)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"l/q/leader","Index":76}},)" + lock);
  CHECK(text(encode(kOurs, AcquireLock{{}, "5e55", 77}, at)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"l/q/leader","Index":77}},)"
        R"({"KV":{"Verb":"check-session","Key":"l/q/leader","Session":"5e55"}},)" +
            lock);
  CHECK(text(encode(kOurs, ReleaseLock{{}, "5e55", 77}, at)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"l/q/leader","Index":77}},)"
        R"({"KV":{"Verb":"unlock","Key":"l/q/leader","Session":"5e55","Value":")" +
            base64_encode(
                R"({"node":"a","lock_delay":"30s","released":"2026-11-21T02:32:30.949Z"})") +
            R"("}}])");
}

TEST_CASE("a partition has a lock of its own, and requests that depend on the number check it") {
  const Partition third{16, 3};
  CHECK(kOurs.layout.lock_key({1, 0}) == "l/q/leader");
  CHECK(kOurs.layout.lock_key(third) == "l/q/leader/16/3");
  const auto acquire = text(encode(kOurs, AcquireLock{{}, "5e55", 0, 76, third, 9}, {}));
  CHECK(acquire.starts_with(
      R"(PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"l/q/partitions","Index":9}},)"
      R"({"KV":{"Verb":"check-index","Key":"l/q/leader/16/3","Index":76}},)"
      R"({"KV":{"Verb":"lock","Key":"l/q/leader/16/3","Session":"5e55",)"));
  const auto release = text(encode(kOurs, ReleaseLock{{}, "5e55", 77, third}, {}));
  CHECK(release.starts_with(
      R"(PUT /v1/txn [{"KV":{"Verb":"check-index","Key":"l/q/leader/16/3","Index":77}},)"
      R"({"KV":{"Verb":"unlock","Key":"l/q/leader/16/3",)"));
  CHECK(text(encode(kOurs, ReadLeader{{}, true, 0, third})) ==
        "GET /v1/kv/l/q/leader/16/3?consistent");
  const Commit commit{{}, "5e55", {FinishOp{"l/q/tasks/a", 8}}, {3, 12}, 16, 9};
  CHECK(text(encode(kOurs, commit)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-session","Key":"l/q/leader/16/3","Session":"5e55"}},)"
        R"({"KV":{"Verb":"check-session","Key":"l/q/leader/16/12","Session":"5e55"}},)"
        R"({"KV":{"Verb":"check-index","Key":"l/q/partitions","Index":9}},)"
        R"({"KV":{"Verb":"delete-cas","Key":"l/q/tasks/a","Index":8}}])");
}

TEST_CASE("reads say how consistent they are, and how long they wait") {
  CHECK(text(encode(kOurs, ReadLeader{{}, true, 0})) == "GET /v1/kv/l/q/leader?consistent");
  CHECK(text(encode(kOurs, ReadLeader{{}, false, 0})) == "GET /v1/kv/l/q/leader");
  CHECK(text(encode(kOurs, ReadLeader{{}, false, 12})) == "GET /v1/kv/l/q/leader?index=12");
  CHECK(text(encode(kOurs, WatchControl{{}, 0})) == "GET /v1/kv/l/q/control?consistent");
  CHECK(text(encode(kOurs, WatchControl{{}, 13})) == "GET /v1/kv/l/q/control?index=13");
  CHECK(text(encode(kOurs, ReadRate{})) == "GET /v1/kv/l/q/rate?consistent");
  CHECK(text(encode(kOurs, ListTasks{{}, 0})) == "GET /v1/kv/l/q/tasks/?keys&consistent");
  CHECK(text(encode(kOurs, ListTasks{{}, 18446744073709551615ULL})) ==
        "GET /v1/kv/l/q/tasks/?keys&index=18446744073709551615");
  CHECK(text(encode(kOurs, FetchTasks{{}, {"l/q/tasks/a", "l/q/tasks/\""}})) ==
        R"(PUT /v1/txn?consistent [{"KV":{"Verb":"get","Key":"l/q/tasks/a"}},)"
        R"({"KV":{"Verb":"get","Key":"l/q/tasks/\""}}])");
  CHECK(text(encode(kOurs, CheckTasks{{}, {{"l/q/tasks/a", 7}}})) ==
        R"(PUT /v1/txn?consistent [{"KV":{"Verb":"check-index","Key":"l/q/tasks/a","Index":7}}])");
}

TEST_CASE("a long answer fails when no more of it comes, not while it comes") {
  for (const http::Request& request :
       {encode(kOurs, ListTasks{{}, 0}), encode(kOurs, FetchTasks{{}, {"l/q/tasks/a"}})}) {
    CHECK(request.silence == kOurs.request_timeout);
    CHECK(request.timeout > 10 * kOurs.request_timeout);
  }
  CHECK(encode(kOurs, ListTasks{{}, 9}).long_poll);
  CHECK(encode(kOurs, FetchTasks{{}, {"l/q/tasks/a"}}).only_reads);
}

TEST_CASE("a blocking query waits for less than the 30 s after which answers may be cut off") {
  const http::Request blocking = encode(kOurs, ReadLeader{{}, false, 12});
  CHECK(blocking.long_poll);
  REQUIRE(blocking.watch);
  CHECK(blocking.watch->index == 12);
  CHECK(blocking.watch->wait == 25s);
  CHECK(blocking.watch->wait * 17 / 16 < 30s);  // Consul adds up to a sixteenth
  CHECK(blocking.timeout == 3s);                // beyond the wait
  const http::Request at_once = encode(kOurs, ReadLeader{{}, true, 0});
  CHECK_FALSE(at_once.long_poll);
  CHECK_FALSE(at_once.watch);
  CHECK(at_once.timeout == 3s);
}

TEST_CASE("requests that work waits for are asked more often, those for leadership go first") {
  CHECK(encode(kOurs, ListTasks{{}, 14}).watch->prompt);
  CHECK(encode(kOurs, ReadLeader{{}, false, 12}).watch->prompt);  // it may become free
  CHECK_FALSE(encode(kOurs, ReadLeader{{}, false, 12, {}, true}).watch->prompt);
  CHECK_FALSE(encode(kOurs, WatchControl{{}, 13}).watch->prompt);
  CHECK_FALSE(encode(kOurs, ListSchedules{{}, 13}).watch->prompt);

  CHECK(encode(kOurs, RenewSession{{}, "5e55"}).urgent);
  CHECK(encode(kOurs, ReadLeader{{}, true, 0}).urgent);
  CHECK(encode(kOurs, ReleaseLock{{}, "5e55", 7}, WallTime{}).urgent);
  CHECK_FALSE(encode(kOurs, ReadLeader{{}, false, 12}).urgent);
  CHECK_FALSE(encode(kOurs, Commit{}).urgent);
  CHECK_FALSE(encode(kOurs, CreateSession{}).urgent);
}

TEST_CASE("every operation of a commit is fenced, and by CAS") {
  Stamp stamp{.taken = true};
  const auto record = bytes(R"({"taskType":"T","taskTaken":"false"})");
  BuryOp bury{.key = "l/q/tasks/c", .index = 9, .record = record, .reason = "failed", .taken = 1};
  Commit commit{.session = "5e55",
                .ops = {RestampOp{"l/q/tasks/a", 7, record, stamp, 18446744073709551615ULL},
                        FinishOp{"l/q/tasks/b", 8}, bury, MarkOp{MarkOp::What::kTasksFolder},
                        MarkOp{MarkOp::What::kControl}}};
  CHECK(
      text(encode(kOurs, commit)) ==
      R"(PUT /v1/txn [{"KV":{"Verb":"check-session","Key":"l/q/leader","Session":"5e55"}},)"
      R"({"KV":{"Verb":"cas","Key":"l/q/tasks/a","Index":7,"Flags":18446744073709551615,"Value":")" +
          base64_encode(R"({"taskType":"T","taskTaken":"true"})") +
          R"("}},{"KV":{"Verb":"delete-cas","Key":"l/q/tasks/b","Index":8}},)"
          R"({"KV":{"Verb":"check-index","Key":"l/q/tasks/c","Index":9}},)"
          R"({"KV":{"Verb":"cas","Key":"l/q/dead/c,9","Value":")" +
          base64_encode(dead_letter(bury, kOurs.node)) +
          R"("}},{"KV":{"Verb":"delete-cas","Key":"l/q/tasks/c","Index":9}},)"
          R"({"KV":{"Verb":"cas","Key":"l/q/tasks/"}},)"
          R"({"KV":{"Verb":"cas","Key":"l/q/control","Value":"e30="}}])");
}

TEST_CASE("a job's writes stand between the check of its task and the task's end") {
  FinishOp finish{"l/q/tasks/b", 8};
  finish.writes = {{"app/x", "1", false, {}},
                   {"app/y", "2", false, 0},
                   {"app/z", {}, true, {}},
                   {"app/w", {}, true, 9},
                   {"app/v", {}, true, 0}};
  DoneRecord done{.record = bytes(R"({"taskType":"T","taskTaken":true,"taskAttempt":2})"),
                  .result = "[1]",
                  .attempts = 2,
                  .at = WallTime{std::chrono::milliseconds{1500}}};
  finish.done = std::make_shared<const DoneRecord>(done);
  Commit commit{.session = "5e55", .ops = {finish, PruneOp{"l/q/tasks/old", 7}}};
  const std::string value =
      R"({"record":{"taskType":"T","taskTaken":false},"result":[1],"attempts":2,)"
      R"("started":"1970-01-01T00:00:00.000Z","at":"1970-01-01T00:00:01.500Z","took_ms":1500,)"
      R"("node":"host-a"})";
  CHECK(done_record(done, "host-a") == value);
  CHECK(done_at(value) == done.at);
  CHECK_FALSE(done_at("[]"));
  CHECK(text(encode(kOurs, commit)) ==
        R"(PUT /v1/txn [{"KV":{"Verb":"check-session","Key":"l/q/leader","Session":"5e55"}},)"
        R"({"KV":{"Verb":"check-index","Key":"l/q/tasks/b","Index":8}},)"
        R"({"KV":{"Verb":"set","Key":"app/x","Value":"MQ=="}},)"
        R"({"KV":{"Verb":"cas","Key":"app/y","Value":"Mg=="}},)"
        R"({"KV":{"Verb":"delete","Key":"app/z"}},)"
        R"({"KV":{"Verb":"check-index","Key":"app/w","Index":9}},)"
        R"({"KV":{"Verb":"delete-cas","Key":"app/w","Index":9}},)"
        R"({"KV":{"Verb":"check-not-exists","Key":"app/v"}},)"
        R"({"KV":{"Verb":"set","Key":"l/q/done/b","Value":")" +
            base64_encode(done_record(done, kOurs.node)) +
            R"("}},{"KV":{"Verb":"delete-cas","Key":"l/q/tasks/b","Index":8}},)"
            R"({"KV":{"Verb":"delete-cas","Key":"l/q/done/old","Index":7}}])");
}

TEST_CASE("a tick's task goes with its schedule, or the schedule alone") {
  schedule::Zones zones;
  const auto record = bytes(R"({"every":"1h","task":{"taskType":"T","taskPara":"{tick}"},"x":1})");
  auto definition = read_schedule("s", *record, zones).value();
  const schedule::Tick tick =
      std::chrono::floor<std::chrono::seconds>(*parse_rfc3339("2026-11-24T09:00:00Z"));
  ScheduleOp op{"l/q/schedules/s",
                7,
                "s",
                record,
                std::make_shared<const schedule::Definition>(std::move(definition)),
                tick,
                "s/20261124T090000Z",
                true};
  Commit commit{.session = "5e55", .ops = {op}};
  const std::string fence =
      R"(PUT /v1/txn [{"KV":{"Verb":"check-session","Key":"l/q/leader","Session":"5e55"}},)";
  const auto schedule = [](const std::string& value) {
    return R"({"KV":{"Verb":"cas","Key":"l/q/schedules/s","Index":7,"Value":")" +
           base64_encode(value) + R"("}})";
  };
  CHECK(
      text(encode(kOurs, commit)) ==
      fence +
          schedule(R"({"every":"1h","task":{"taskType":"T","taskPara":"{tick}"},"x":1,)"
                   R"("lastTick":"2026-11-24T09:00:00Z","lastTask":"s/20261124T090000Z"})") +
          R"(,{"KV":{"Verb":"cas","Key":"l/q/tasks/s/20261124T090000Z","Value":")" +
          base64_encode(
              R"({"taskType":"T","taskPara":"2026-11-24T09:00:00Z","executeAt":"2026-11-24T09:00:00Z"})") +
          R"("}}])");
  op.makes_task = false;
  op.index = 0;  // a new one, of the configuration
  op.pauses = true;
  op.flags = 5;
  op.last_task.clear();
  commit.ops = {op};
  CHECK(text(encode(kOurs, commit)) ==
        fence + R"({"KV":{"Verb":"cas","Key":"l/q/schedules/s","Flags":5,"Value":")" +
            base64_encode(R"({"every":"1h","task":{"taskType":"T","taskPara":"{tick}"},"x":1,)"
                          R"("lastTick":"2026-11-24T09:00:00Z","paused":true})") +
            R"("}}])");
  op.index = 7;
  op.erases = true;
  commit.ops = {op};
  CHECK(text(encode(kOurs, commit)) ==
        fence + R"({"KV":{"Verb":"delete-cas","Key":"l/q/schedules/s","Index":7}}])");
  op.pauses = op.erases = false;
  op.flags = 0;
  commit.ops = {op, MarkOp{MarkOp::What::kSchedulesFolder}};
  CHECK(text(encode(kOurs, commit)) ==
        fence +
            schedule(R"({"every":"1h","task":{"taskType":"T","taskPara":"{tick}"},"x":1,)"
                     R"("lastTick":"2026-11-24T09:00:00Z"})") +
            R"(,{"KV":{"Verb":"cas","Key":"l/q/schedules/"}}])");
  CHECK(text(encode(kOurs, ListSchedules{{}, 0})) ==
        "GET /v1/kv/l/q/schedules/?recurse&consistent");
  CHECK(text(encode(kOurs, ListSchedules{{}, 9})) == "GET /v1/kv/l/q/schedules/?recurse&index=9");
}
