#include "client/task_info.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "client/locks.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

const wire::Layout kLayout = wire::Layout::under("lictor/", "q");
constexpr WallTime kSeenNow{1'795'228'350'949ms};

TaskInfo view_of(const std::string& record, const std::string& leader = "s1",
                 const std::string& id = "42") {
  const Locks locks{{wire::KvEntry{kLayout.leader_key, {}, leader, 0, 5, 6}}};
  return view_task(kLayout, {kLayout.task_key(id), record, {}, 0, 5, 6}, locks, kSeenNow);
}

TaskInfo letter_of(const std::string& value, const std::string& id = "42") {
  return view_dead_letter(kLayout, {kLayout.dead_prefix + id, value, {}, 0, 5, 6});
}

TEST_CASE("a task that may start waits, one that is not due is scheduled") {
  CHECK(view_of(R"({"taskType":"T"})").state == TaskState::kWaiting);
  CHECK(view_of(R"({"taskType":"T","executeAt":1})").state == TaskState::kWaiting);
  const TaskInfo later = view_of(R"({"taskType":"T","executeAt":"2030-01-01T00:00:00Z"})");
  CHECK(later.state == TaskState::kScheduled);
  CHECK(later.due == later.time);
  const TaskInfo retry = view_of(
      R"({"taskType":"T","taskTime":1,"taskAttempt":2,"taskRetryAt":"2030-01-01T00:00:00Z",)"
      R"("taskError":"exit 1"})");
  CHECK(retry.state == TaskState::kScheduled);
  CHECK(retry.attempt == 2);
  CHECK(retry.error == "exit 1");
  CHECK(retry.due != retry.time);
}

TEST_CASE("a claim counts as long as its session leads") {
  const std::string record =
      R"({"taskType":"T","taskTaken":"true","taskAttempt":1,"taskClaim":{"node":"host-a",)"
      R"("session":"s1","nonce":"n","since":"2026-11-21T02:00:00Z"}})";
  CHECK(view_of(record).state == TaskState::kRunning);
  CHECK(view_of(record).node == "host-a");
  CHECK(view_of(record).since.has_value());
  CHECK(view_of(record, "s2").state == TaskState::kOrphan);
  CHECK(view_of(record, "").state == TaskState::kOrphan);
  CHECK(view_of(R"({"taskType":"T","taskTaken":true})").state == TaskState::kOrphan);
  // An empty session must not match "nobody leads".
  CHECK(view_of(R"({"taskType":"T","taskTaken":true,"taskClaim":{"node":"x"}})", "").state ==
        TaskState::kOrphan);
}

TEST_CASE(
    "a claim by an earlier start of the leading daemon is an orphan, also under its session") {
  const auto state = [](const std::string& nonce, const std::string& leader_value) {
    const std::string record = R"({"taskType":"T","taskTaken":true,"taskClaim":{"node":"a",)"
                               R"("session":"s1","nonce":")" +
                               nonce + R"("}})";
    const Locks locks{{wire::KvEntry{kLayout.leader_key, leader_value, "s1", 0, 5, 6}}};
    return view_task(kLayout, {kLayout.task_key("1"), record, {}, 0, 5, 6}, locks, kSeenNow).state;
  };
  const std::string value = R"({"node":"a","instance":"beef"})";
  CHECK(state("beef-12", value) == TaskState::kRunning);
  CHECK(state("cafe-12", value) == TaskState::kOrphan);
  CHECK(state("beefcafe-12", value) == TaskState::kOrphan);
  // Who does not say which start it is.
  CHECK(state("cafe-12", R"({"node":"a"})") == TaskState::kRunning);
  CHECK(state("cafe-12", "somebody") == TaskState::kRunning);
  CHECK(state("cafe-12", R"({"instance":7})") == TaskState::kRunning);
  // A key that nobody holds may still tell of its last leader.
  CHECK(lock_of(wire::KvEntry{kLayout.leader_key, value, {}, 0, 5, 6}).name().empty());
  CHECK(lock_of(std::nullopt).name().empty());
}

TEST_CASE("a record that cannot be read says why") {
  const TaskInfo view = view_of("junk");
  CHECK(view.state == TaskState::kUnreadable);
  CHECK(view.id == "42");
  CHECK(view.record == "junk");
  CHECK_FALSE(view.error.empty());
}

TEST_CASE("a record that does not fit into a transaction is too large, readable or not") {
  const auto record_of = [](std::size_t bytes) {
    const std::string frame = R"({"taskType":"T","p":""})";
    return R"({"taskType":"T","p":")" + std::string(bytes - frame.size(), 'x') + "\"}";
  };
  const std::size_t most = wire::record_limit(kLayout, kLayout.task_key("42"));
  CHECK(most > 385'000);
  CHECK(most < 393'116);  // in base64 that alone fills a transaction
  CHECK(view_of(record_of(most)).state == TaskState::kWaiting);
  const TaskInfo large = view_of(record_of(most + 1));
  CHECK(large.state == TaskState::kTooLarge);
  CHECK(large.error.find(std::to_string(most + 1)) != std::string::npos);
  CHECK(large.error.ends_with(std::to_string(most)));
  CHECK(view_of(std::string(most, 'x')).state == TaskState::kTooLarge);
  CHECK(view_of(std::string(380'000, 'x')).state == TaskState::kUnreadable);
  CHECK(view_of(std::string(380'000, '\xff')).state == TaskState::kTooLarge);  // in base64
  CHECK(view_of(std::string(280'000, '\xff')).state == TaskState::kUnreadable);
}

TEST_CASE("a dead letter has its task, reason and time") {
  const TaskInfo view = letter_of(
      R"({"record":{"taskType":"T","serialKey":"k"},"reason":"failed","error":"exit 3",)"
      R"("attempts":3,"lost":1,"output_tail":"bye","at":"2026-11-21T01:00:00.000Z","node":"h"})",
      "a/42~2");
  CHECK(view.state == TaskState::kDead);
  CHECK(view.id == "a/42~2");
  CHECK(view.type == "T");
  CHECK(view.serial_key == "k");
  CHECK(view.reason == "failed");
  CHECK(view.error == "exit 3");
  CHECK(view.attempt == 3);
  CHECK(view.lost == 1);
  CHECK(view.output_tail == "bye");
  CHECK(view.node == "h");
  CHECK(view.since.has_value());
}

TEST_CASE("another value among the dead letters is shown, too") {
  CHECK(letter_of("junk").error == "this is not a dead letter of lictor");
  CHECK(letter_of(R"({"reason":7,"attempts":"x","record":[]})").state == TaskState::kDead);
}

TEST_CASE("errors that differ in the numbers of their details alone are of one kind") {
  CHECK(error_kind("exit status 3") == "exit status 3");
  CHECK(error_kind("exit status 3: job 17 of host-a2: no route to 10.0.0.7") ==
        "exit status 3: job # of host-a2: no route to #.#.#.#");
  CHECK(error_kind("failed: db7 is no utf8, see 5f3a-e41b at 0x7f") ==
        "failed: db7 is no utf8, see #-# at #");
  CHECK(error_kind("timed out after 5s") == "timed out after 5s");
  CHECK(error_kind("").empty());
}

TEST_CASE("the list has running tasks, then waiting tasks in order, then dead ones") {
  std::vector<TaskInfo> views{
      letter_of("{}", "dead"),
      view_of("junk", "s1", "bad"),
      view_of(R"({"taskType":"T","executeAt":"2031-01-01T00:00:00Z"})", "s1", "later"),
      view_of(R"({"taskType":"T","executeAt":"2030-01-01T00:00:00Z"})", "s1", "soon"),
      view_of(R"({"taskType":"T","taskTime":2})", "s1", "second"),
      view_of(R"({"taskType":"T","taskTime":1})", "s1", "first"),
      view_of(R"({"taskType":"T"})", "s1", "timeless"),
      view_of(R"({"taskType":"T","taskTaken":true})", "s1", "taken")};
  std::sort(views.begin(), views.end(), listed_before);
  std::vector<std::string> ids;
  for (const TaskInfo& view : views) ids.push_back(view.id);
  CHECK(ids == std::vector<std::string>{"taken", "timeless", "first", "second", "soon", "later",
                                        "bad", "dead"});
}

}  // namespace
}  // namespace lictor::client
