#include "client/change.h"

#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "client/locks.h"
#include "client/task_info.h"
#include "fake_consul.h"

namespace lictor::client {
namespace {

using http::Delivery;
using test::contains;
using test::entry;
using test::reply;
using test::txn_error;
using test::undelivered;

const std::string kAllApplied = R"({"Results":null,"Errors":null})";

std::string task_entry(std::uint64_t index) {
  return entry("lictor/q/tasks/42", R"({"taskType":"T"})", index);
}

struct Scene {
  explicit Scene(std::deque<http::Response> replies) : consul(std::move(replies)) {}
  Result<TaskInfo> change() { return change_one(queue, "lictor/q/tasks/42", plan); }

  test::FakeConsul consul;
  Store store{consul};
  Queue queue{store, "q", wire::Layout::under("lictor/", "q")};
  Plan plan{[this](wire::KvEntry from) {
              return view_task(queue.layout, std::move(from), Locks::unknown(), {});
            },
            plan_removal};
};

std::vector<TaskInfo> tasks(std::size_t count) {
  std::vector<TaskInfo> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].id = std::to_string(i);
    all[i].key = "lictor/q/tasks/" + all[i].id;
    all[i].record = R"({"taskType":"T"})";
    all[i].modify_index = 7;
  }
  return all;
}

TEST_CASE("a task that changed meanwhile is read and changed again") {
  Scene scene{{reply(200, task_entry(7)),
               reply(409, txn_error(0, "failed index check for key, current modify index 8 != 7")),
               reply(200, task_entry(8)), reply(200, kAllApplied)}};
  const auto task = scene.change().value();
  CHECK(task.modify_index == 8);
  CHECK(scene.consul.all_asked());
}

TEST_CASE("after a lost reply, a missing key means that the change was applied") {
  const auto change = [](std::deque<http::Response> replies) {
    Scene scene{std::move(replies)};
    auto changed = scene.change();
    CHECK(scene.consul.all_asked());
    return changed;
  };
  const http::Response task = reply(200, task_entry(7)), lost = undelivered(Delivery::kLost);
  const http::Response not_sent = undelivered(Delivery::kNotSent), none = reply(404, "", 9);
  CHECK(change({task, lost, none}));
  CHECK(change({task, lost, task, reply(200, kAllApplied)}));
  for (const std::deque<http::Response>& in_doubt :
       {std::deque{task, lost, lost}, std::deque{task, lost, task, lost, task, lost},
        std::deque{task, lost, task, not_sent}}) {
    const Error error = change(in_doubt).error();
    CHECK(contains(error.message, "cannot tell whether lictor/q/tasks/"));
    CHECK(error.code == ErrorCode::kTimeout);
  }
  CHECK_FALSE(contains(change({task, not_sent}).error().message, "cannot tell"));
  CHECK(change({lost}).error().code == ErrorCode::kUnavailable);
  CHECK(change({none}).error().code == ErrorCode::kNotFound);
}

TEST_CASE("a missing right is reported without another try") {
  Scene scene{{reply(200, task_entry(7)), reply(409, txn_error(1, "Permission denied"))}};
  CHECK(scene.change().error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE(
    "many changes go in transactions of what Consul takes, and a missing task does not stop the "
    "others") {
  Scene scene{{reply(409, txn_error(2, "failed to check index, key doesn't exist")),  // of task 1
               reply(200, kAllApplied),                                               // the others
               reply(404, "", 9),                                                     // task 1
               reply(200, kAllApplied)}};                                             // 32 and on
  const BulkResult result = change_many(scene.queue, tasks(40), scene.plan, {}, 1);
  CHECK(result.tasks.size() == 39);
  CHECK(result.refused.empty());
  CHECK(scene.consul.all_asked());
  CHECK_FALSE(contains(scene.consul.asked[1].body, "tasks/1\""));
  CHECK(contains(scene.consul.asked[1].body, "tasks/31\""));
  CHECK_FALSE(contains(scene.consul.asked[1].body, "tasks/32\""));
}

TEST_CASE("changes under way when Consul stops answering are in doubt, the others are not") {
  Scene scene{{undelivered(Delivery::kLost), undelivered(Delivery::kNotSent, "no connection")}};
  const BulkResult result = change_many(scene.queue, tasks(100), scene.plan, {}, 1);
  CHECK(result.tasks.empty());
  REQUIRE(result.refused.size() == 100);
  std::size_t doubtful = 0;
  for (const auto& [id, error] : result.refused) {
    const bool on_its_way = std::stoi(id) < 32;
    const bool in_doubt = contains(error.message, "cannot tell whether lictor/q/tasks/" + id + " ");
    CHECK(in_doubt == on_its_way);
    CHECK(contains(error.message, "no connection"));
    CHECK(error.message.starts_with(in_doubt ? "cannot tell" : "not tried: "));
    CHECK(error.code == (in_doubt ? ErrorCode::kTimeout : ErrorCode::kUnavailable));
    doubtful += in_doubt ? 1 : 0;
  }
  CHECK(doubtful == 32);
}

TEST_CASE("a refused or untried change is never in doubt") {
  const auto stale = [] {
    return reply(409, txn_error(0, "failed index check for key, current modify index 8 != 7"));
  };
  // What became of the first 32 cannot be read any more; that of the reading, too, the reply is
  // lost, leaves no doubt of the other 8.
  Scene sent{{undelivered(Delivery::kLost), undelivered(Delivery::kLost, "reset")}};
  const BulkResult lost = change_many(sent.queue, tasks(40), sent.plan, {}, 1);
  REQUIRE(lost.refused.size() == 40);
  for (const auto& [id, error] : lost.refused) {
    CHECK(error.code == (std::stoi(id) < 32 ? ErrorCode::kTimeout : ErrorCode::kUnavailable));
    CHECK(contains(error.message, "reset"));
  }
  // Both are refused, one after the other, and what the matter is cannot be read.
  Scene changed{{stale(), stale(), undelivered(Delivery::kLost, "reset")}};
  const BulkResult refused = change_many(changed.queue, tasks(2), changed.plan, {}, 1);
  CHECK(changed.consul.all_asked());
  REQUIRE(refused.refused.size() == 2);
  for (const auto& [id, error] : refused.refused) {
    CHECK(error.code == ErrorCode::kUnavailable);
    CHECK(contains(error.message, "reset"));
  }
}

TEST_CASE("after an error nothing more is sent, and each task has a result") {
  Scene scene{{reply(200, kAllApplied), reply(409, txn_error(1, "Permission denied"))}};
  std::size_t told = 0;
  const BulkResult result =
      change_many(scene.queue, tasks(2000), scene.plan,
                  [&](std::size_t done, std::size_t) { CHECK(done >= std::exchange(told, done)); });
  CHECK(result.tasks.size() == 32);
  REQUIRE(result.refused.size() == 1968);
  std::set<std::string> ids;
  for (const auto& [id, error] : result.refused) {
    CHECK(error.code == ErrorCode::kPermissionDenied);
    ids.insert(id);
  }
  CHECK(ids.size() == 1968);
}

}  // namespace
}  // namespace lictor::client
