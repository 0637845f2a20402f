#include "client/task_info.h"

#include <algorithm>

#include "cli/model_consul.h"
#include "client/locks.h"
#include "core/partition.h"
#include "fake_consul.h"
#include "unit/refusal.h"
#include "wire/transaction_plan.h"

namespace lictor::client::test {
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

TEST_CASE("a claim by an earlier start of the leader is an orphan, also under its session") {
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
  // A lock without an "instance" does not show which start it is.
  CHECK(state("cafe-12", R"({"node":"a"})") == TaskState::kRunning);
  CHECK(state("cafe-12", "somebody") == TaskState::kRunning);
  CHECK(state("cafe-12", R"({"instance":7})") == TaskState::kRunning);
  // A key that nobody holds may still name its last leader.
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
  CHECK(contains(large.error, std::to_string(most + 1)));
  CHECK(large.error.ends_with(std::to_string(most)));
  CHECK(view_of(std::string(most, 'x')).state == TaskState::kTooLarge);
  CHECK(view_of(std::string(380'000, 'x')).state == TaskState::kUnreadable);
  CHECK(view_of(std::string(380'000, '\xff')).state == TaskState::kTooLarge);  // in base64
  CHECK(view_of(std::string(280'000, '\xff')).state == TaskState::kUnreadable);
}

TEST_CASE("a dead letter has its task, reason and time; another value there is shown, too") {
  const TaskInfo view = letter_of(
      R"({"record":{"taskType":"T","serialKey":"k"},"reason":"failed","error":"exit 3",)"
      R"("attempts":3,"lost":1,"output_tail":"bye","at":"2026-11-21T01:00:00.000Z","node":"h"})",
      "a/42,7");
  CHECK(view.state == TaskState::kDead);
  CHECK(view.id == "a/42,7");
  CHECK(view.type == "T");
  CHECK(view.serial_key == "k");
  CHECK(view.reason == "failed");
  CHECK(view.error == "exit 3");
  CHECK(view.attempt == 3);
  CHECK(view.lost == 1);
  CHECK(view.output_tail == "bye");
  CHECK(view.node == "h");
  CHECK(view.since.has_value());
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

http::Response count_of(const std::string& value) {
  return reply(200, entry("lictor/q/partitions", value), 9);
}

// The locks in Consul's answers, all of which are asked for.
Result<Locks> locks_by(std::deque<http::Response> replies) {
  FakeConsul consul{std::move(replies)};
  Store store{consul};
  auto locks = read_locks(store, kLayout);
  CHECK(consul.all_asked());
  return locks;
}

std::string held(const std::string& key, const std::string& node, const std::string& session) {
  const std::string value = R"({"node":")" + node + R"(","instance":"i-)" + node + "\"}";
  return entry("lictor/q/leader" + key, value, 7, session);
}

// A task that "a" claimed with its session.
std::string claimed(const std::string& serial_key, const std::string& session = "s-a") {
  return R"({"taskType":"T","serialKey":")" + serial_key +
         R"(","taskTaken":true,"taskAttempt":1,"taskClaim":{"node":"a","session":")" + session +
         R"(","nonce":"i-a-1","since":"2026-01-01T00:00:00Z"}})";
}

// A serialKey of a task in that partition of four.
std::string key_in(std::uint32_t partition) {
  for (int i = 0;; ++i) {
    std::string key = "k" + std::to_string(i);
    if (core::partition_of(key, 4) == partition) return key;
  }
}

// The state of a task of that partition that "a" claimed.
TaskState state_in(const Locks& locks, std::uint32_t partition) {
  return view_task(kLayout, {kLayout.task_key("1"), claimed(key_in(partition)), {}, 0, 5, 6}, locks,
                   WallTime{})
      .state;
}

}  // namespace

TEST_CASE("without a number of partitions, or with 1, the leader key is the only lock") {
  for (const auto& count : {reply(404, "", 9), count_of("1"), count_of("1\n")}) {
    const auto locks = locks_by({count, reply(200, held("", "a", "s-a"), 9)}).value();
    CHECK(locks.count() == 1);
    CHECK(locks[0].session == "s-a");
    CHECK(locks[0].text("instance") == "i-a");
    CHECK(locks[0].name() == "a");
    CHECK(state_in(locks, 3) == TaskState::kRunning);
  }
}

TEST_CASE("each of several partitions has its own leader, by which its tasks run") {
  const std::string locked = listing(held("/4/0", "a", "s-a"), held("/4/2", "b", "s-b"));
  const auto locks = locks_by({count_of("4"), reply(200, locked, 9), reply(404, "", 9)}).value();
  REQUIRE(locks.count() == 4);
  CHECK(locks[0].session == "s-a");
  CHECK(locks[1].session.empty());
  CHECK(locks[2].session == "s-b");
  CHECK(locks[1].index == 0);
  CHECK(locks[2].partition == core::Partition{4, 2});
  CHECK(state_in(locks, 0) == TaskState::kRunning);
  CHECK(state_in(locks, 1) == TaskState::kOrphan);
  CHECK(state_in(locks, 2) == TaskState::kOrphan);
}

TEST_CASE("a task is in the partition of its serialKey, else its id; unreadable, of its key") {
  const Locks locks{std::vector<std::optional<wire::KvEntry>>(4)};
  wire::Layout by_instance = kLayout;
  by_instance.serialize_by = "/taskPara/instanceId";
  const auto partition = [&](const std::string& record) {
    return locks.partition_of(
        view_task(by_instance, {kLayout.task_key("42"), record, {}, 0, 5, 6}, locks, {}));
  };
  const auto of = [](const char* text) { return core::partition_of(text, 4); };
  CHECK(partition(R"({"taskType":"T"})") == of("42"));
  CHECK(partition(R"({"taskType":"T","taskId":"nightly"})") == of("nightly"));
  CHECK(partition(R"({"taskType":"T","taskId":"nightly","serialKey":"db7"})") == of("db7"));
  CHECK(partition(R"({"taskType":"T","taskPara":{"instanceId":"db8"}})") == of("db8"));
  CHECK(partition(R"({"serialKey":"db7")") == of("lictor/q/tasks/42"));
  for (const char* text : {"nightly", "db7", "db8", "lictor/q/tasks/42"}) {
    CHECK_MESSAGE(of(text) != of("42"), text);  // or this shows nothing
  }
}

TEST_CASE("keys that are no locks of this number of partitions do not count") {
  const std::string odd = listing(held("/4/7", "a", "s-a"), held("/4/01", "b", "s-b"));
  const auto locks = locks_by({count_of("4"), reply(200, odd, 9), reply(404, "", 9)}).value();
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(locks[i].session.empty());
}

TEST_CASE("an unreadable number of partitions is an error with the key and what was expected") {
  for (const std::string value : {"", "0", "257", "-4", "4.0", "many", "4 4", "\n"}) {
    CHECK(contains(refusal_of(locks_by({count_of(value)}), ErrorCode::kInvalid),
                   "lictor/q/partitions: expected the number of partitions, from 1 to 256, got"));
  }
}

TEST_CASE("while the locks may not be read, claimed tasks count as running") {
  const auto denied = reply(403, "Permission denied");
  CHECK(locks_by({denied, denied}).error().code == ErrorCode::kPermissionDenied);
  CHECK(locks_by({denied, reply(404, "", 9)})->count() == 1);
  CHECK(locks_by({count_of("4"), reply(404, "", 9), denied}).error().code ==
        ErrorCode::kPermissionDenied);
  CHECK(state_in(locks_if_known(locks_by({reply(404, "", 9), denied})), 0) == TaskState::kRunning);
  // Of some partitions.
  const auto part =
      locks_by({count_of("4"), reply(200, held("/4/2", "b", "s-b"), 9), denied}).value();
  CHECK(state_in(part, 0) == TaskState::kRunning);
  CHECK(state_in(part, 2) == TaskState::kOrphan);
}

TEST_CASE("list and show take the state of a task from the leader of its partition") {
  cli::test::ModelConsul consul;
  const std::string a = consul.session(), b = consul.session();
  consul.put("lictor/q/partitions", "4");
  consul.put("lictor/q/leader/4/0", R"({"node":"a"})", a);
  consul.put("lictor/q/leader/4/2", R"({"node":"b"})", b);
  consul.put("lictor/q/tasks/1", claimed(key_in(0), a));
  consul.put("lictor/q/tasks/2", claimed(key_in(2), a));
  lictor::Client client = client_of(consul);
  const auto all = client.list().value();
  REQUIRE(all.tasks.size() == 2);
  for (const TaskInfo& task : all.tasks) {
    CHECK(task.state == (task.id == "1" ? TaskState::kRunning : TaskState::kOrphan));
  }
  const auto shown = client.show("2").value();
  REQUIRE(shown.size() == 1);
  CHECK(shown.front().state == TaskState::kOrphan);
}

}  // namespace lictor::client::test
