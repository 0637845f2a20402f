#include "client/locks.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "cli/model_consul.h"
#include "client/task_info.h"
#include "core/partition.h"
#include "fake_consul.h"
#include "unit/refusal.h"

namespace lictor::client {
namespace {

using test::contains;
using test::entry;
using test::listing;
using test::reply;

const wire::Layout kLockLayout = wire::Layout::under("lictor/", "q");

http::Response count_of(const std::string& value) {
  return reply(200, entry("lictor/q/partitions", value), 9);
}

// The locks that Consul's answers tell, all of which are asked for.
Result<Locks> locks_by(std::deque<http::Response> replies) {
  test::FakeConsul consul{std::move(replies)};
  Store store{consul};
  auto locks = read_locks(store, kLockLayout);
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
  return view_task(kLockLayout,
                   {kLockLayout.task_key("1"), claimed(key_in(partition)), {}, 0, 5, 6}, locks,
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

TEST_CASE(
    "a task is in the partition of its serialKey, else its id; unreadable, of its whole key") {
  const Locks locks{std::vector<std::optional<wire::KvEntry>>(4)};
  wire::Layout by_instance = kLockLayout;
  by_instance.serialize_by = "/taskPara/instanceId";
  const auto partition = [&](const std::string& record) {
    return locks.partition_of(
        view_task(by_instance, {kLockLayout.task_key("42"), record, {}, 0, 5, 6}, locks, {}));
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
    const Error error = refusal_of(locks_by({count_of(value)}));
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK(contains(error.message,
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

TEST_CASE("list and show tell the state of a task by the leader of its partition") {
  cli::test::ModelConsul consul;
  const std::string a = consul.session(), b = consul.session();
  consul.put("lictor/q/partitions", "4");
  consul.put("lictor/q/leader/4/0", R"({"node":"a"})", a);
  consul.put("lictor/q/leader/4/2", R"({"node":"b"})", b);
  consul.put("lictor/q/tasks/1", claimed(key_in(0), a));
  consul.put("lictor/q/tasks/2", claimed(key_in(2), a));
  lictor::Client client = test::client_of(consul);
  const auto all = client.list().value();
  REQUIRE(all.tasks.size() == 2);
  for (const TaskInfo& task : all.tasks) {
    CHECK(task.state == (task.id == "1" ? TaskState::kRunning : TaskState::kOrphan));
  }
  const auto shown = client.show("2").value();
  REQUIRE(shown.size() == 1);
  CHECK(shown.front().state == TaskState::kOrphan);
}

}  // namespace lictor::client
