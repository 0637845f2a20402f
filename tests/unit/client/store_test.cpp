#include "client/store.h"

#include <chrono>
#include <set>

#include "base/clock.h"
#include "client/change.h"
#include "client/locks.h"
#include "client/task_info.h"
#include "fake_consul.h"
#include "unit/refusal.h"
#include "wire/transaction_plan.h"

namespace lictor::client::test {
namespace {

using http::Delivery;

TEST_CASE("a task is created by cas with index 0, and its index is returned") {
  FakeConsul consul{{reply(200, result("t/42", "{}", 9))}};
  const auto created = Store{consul}.create({{"t/42", "{}"}}).value();
  CHECK(created.index == 9);
  CHECK(created.existing.empty());
  CHECK(consul.asked[0].body == R"([{"KV":{"Verb":"cas","Key":"t/42","Value":"e30="}}])");
}

TEST_CASE("existing records are left out and the others are written") {
  FakeConsul consul{
      {reply(409, R"({"Results":null,"Errors":[)"
                  R"({"OpIndex":0,"What":"failed to set key \"a\", index is stale"},)"
                  R"({"OpIndex":2,"What":"failed to set key \"c\", index is stale"}]})"),
       reply(200, result("b", "2"))}};
  const auto created = Store{consul}.create({{"a", "1"}, {"b", "2"}, {"c", "3"}}).value();
  CHECK(created.existing == std::vector<std::size_t>{0, 2});
  CHECK(consul.asked.size() == 2);
  CHECK_FALSE(contains(consul.asked[1].body, "\"a\""));
}

TEST_CASE("a lost reply is resolved by reading back, also when the task is claimed already") {
  const std::string mine = R"({"taskType":"T","taskTaken":false})";
  const std::string claimed =
      R"({"taskType":"T","taskTaken":true,"taskAttempt":1,"taskClaim":{"node":"h"}})";
  FakeConsul consul{{undelivered(Delivery::kLost), reply(200, result("t/42", claimed, 9))}};
  const auto created = Store{consul}.create({{"t/42", mine}}).value();
  CHECK(created.index == 9);
  CHECK(created.existing.empty());
  CHECK(contains(consul.asked[1].target, "consistent"));
}

TEST_CASE("several lost transactions share one time limit for reading back") {
  using namespace std::chrono_literals;
  const std::vector<Store::Record> records{{"t/42", R"({"taskType":"T"})"}};
  const http::Response lost = undelivered(Delivery::kLost);
  const auto look = [&](Duration ago, std::deque<http::Response> replies) {
    FakeConsul consul{std::move(replies)};
    auto created = Store{consul}.create_from(lost, boot_now() - ago, records, {});
    return std::pair{std::move(created), consul.asked.size()};
  };
  const auto [there, looks] = look(25s, {reply(200, result("t/42", records[0].value, 9))});
  REQUIRE(there);
  CHECK(there->index == 9);
  CHECK(looks == 1);
  const auto [gone, more_looks] = look(25s, {failed("key doesn't exist")});
  CHECK(contains(refusal_of(gone, ErrorCode::kTimeout), "it is not there now"));
  CHECK(more_looks == 1);
  const auto [unknown, no_looks] = look(31s, {});
  CHECK(contains(refusal_of(unknown, ErrorCode::kTimeout), "look again when Consul is back"));
  CHECK(no_looks == 0);
}

TEST_CASE("after a lost reply, another task of the same id means that ours was not written") {
  FakeConsul consul{{reply(500, "rpc error making call: EOF"),
                     reply(200, result("t/42", R"({"taskType":"Other"})")),
                     failed("failed to set key, index is stale")}};
  const auto created = Store{consul}.create({{"t/42", R"({"taskType":"T"})"}}).value();
  CHECK(created.existing == std::vector<std::size_t>{0});
}

TEST_CASE("a request that was not sent changed nothing; a missing right is reported as such") {
  FakeConsul consul{{undelivered(Delivery::kNotSent)}};
  CHECK(Store{consul}.create({{"t/42", "{}"}}).error().code == ErrorCode::kUnavailable);
  CHECK(consul.asked.size() == 1);
  FakeConsul denied{{failed("Permission denied")}};
  CHECK(Store{denied}.create({{"t/42", "{}"}}).error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE("the largest record that can be claimed is created by a transaction") {
  FakeConsul consul{{reply(200, result("t/42", ""))}};
  CHECK(Store{consul}.create({{"t/42", std::string(wire::record_limit({}, "t/42"), 'x')}}));
  CHECK(consul.asked[0].target == "/v1/txn");
  CHECK(consul.asked[0].body.size() <= limits::kTransactionBytes);
}

TEST_CASE("a key that a path cannot name is read by a transaction") {
  FakeConsul consul{{reply(200, result("t/a//b", "v"))}};
  CHECK(Store{consul}.get("t/a//b").value()->value == "v");
  CHECK(contains(consul.asked[0].target, "/v1/txn"));
}

TEST_CASE("among many keys, missing ones differ from those that may not be read") {
  FakeConsul consul{{failed("key \\\"a\\\" doesn't exist"), reply(200, result("b", "2"))}};
  const auto entries = Store{consul}.get_all({"a", "b"}).value();
  CHECK_FALSE(entries[0]);
  CHECK(entries[1]->value == "2");
  FakeConsul denied{{reply(200, R"({"Results":[],"Errors":null})")}};
  CHECK(Store{denied}.get_all({"a"}).error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE("an empty listing differs from one that may not be read") {
  FakeConsul empty{{reply(404, "", 5), reply(404, "", 5)}};
  const auto listed = Store{empty}.list("t/").value();
  CHECK(listed.entries.empty());
  CHECK_FALSE(listed.hidden);
  FakeConsul denied{{reply(404, "", 5), reply(403, "Permission denied")}};
  CHECK(Store{denied}.list("t/").error().code == ErrorCode::kPermissionDenied);
  FakeConsul filtered{{reply(200, entry("t/a", "1"), 5), reply(403, "Permission denied")}};
  CHECK(Store{filtered}.list("t/")->hidden);
}

// A server that starts again leads before it has read the whole of its log, and answers requests
// that need not be consistent from the part it has read: 3,584 of 30,000 tasks (Consul 1.8.7).
TEST_CASE("a listing is consistent") {
  FakeConsul consul{{reply(404, "", 5), reply(404, "", 5)}};
  REQUIRE(Store{consul}.list("t/"));
  REQUIRE(consul.asked.size() == 2);
  for (const http::Request& request : consul.asked) CHECK(contains(request.target, "consistent"));
}

TEST_CASE("a listing may take long, but its first byte no longer than another read's") {
  FakeConsul consul{{reply(404, "", 5), reply(404, "", 5), reply(404, "", 5)}};
  Store store{consul};
  CHECK(store.list("t/"));
  CHECK(store.get("k"));
  CHECK(consul.asked[0].timeout > kStoreTimeout);
  CHECK(consul.asked[0].silence == kStoreTimeout);
  CHECK(consul.asked[2].timeout == kStoreTimeout);
}

TEST_CASE("the error of a lost read says that nothing was changed, also for a PUT") {
  FakeConsul consul{{undelivered(Delivery::kLost, "GET /v1/kv/t/: http://consul: reset"),
                     undelivered(Delivery::kLost, "PUT /v1/txn: http://consul: reset")}};
  Store store{consul};
  for (const Error& lost : {store.list("t/").error(), store.get_all({"k"}).error()}) {
    CHECK(lost.code == ErrorCode::kTimeout);
    CHECK(contains(lost.message, "http://consul: reset; it was a read, so nothing was changed"));
  }
  for (const auto& asked : consul.asked) CHECK(asked.only_reads);  // which the transport goes by
}

TEST_CASE("an index that goes backwards is not waited on") {
  FakeConsul consul{{reply(200, entry("k", "v"), 30), reply(200, entry("k", "v"), 20)}};
  Store store{consul};
  CHECK(store.watch("k", 0, {})->index == 30);
  CHECK(store.watch("k", 30, std::chrono::milliseconds{1500})->index == 0);
  CHECK(consul.asked[0].target == "/v1/kv/k?consistent");
  CHECK(consul.asked[1].target == "/v1/kv/k?index=30&wait=1500ms");
  CHECK(consul.asked[1].long_poll);
}

TEST_CASE("rights to write are read from the refusals of an impossible transaction") {
  FakeConsul consul{{failed("Permission denied", 3)}};
  CHECK(Store{consul}.writable({"a", "b"}).value() == std::vector<bool>{true, false});
  CHECK(contains(consul.asked[0].body, R"("check-not-exists","Key":"a")"));
  CHECK(contains(consul.asked[0].body, R"("check-index","Key":"a","Index":1)"));
}

TEST_CASE("a lost replace is resolved by the value and the index") {
  FakeConsul done{{undelivered(Delivery::kLost), reply(200, entry("k", "new", 9))}};
  CHECK(*Store{done}.replace("k", 7, "new"));
  FakeConsul other{{undelivered(Delivery::kLost), reply(200, entry("k", "theirs", 9))}};
  CHECK_FALSE(*Store{other}.replace("k", 7, "new"));
  FakeConsul unknown{{undelivered(Delivery::kLost), reply(200, entry("k", "old", 7))}};
  CHECK(Store{unknown}.replace("k", 7, "new").error().code == ErrorCode::kTimeout);
}

const std::string kAllApplied = R"({"Results":null,"Errors":null})";

std::string task_entry(std::uint64_t index) {
  return entry("lictor/q/tasks/42", R"({"taskType":"T"})", index);
}

struct Scene {
  explicit Scene(std::deque<http::Response> replies) : consul(std::move(replies)) {}
  Result<TaskInfo> change() { return change_one(queue, "lictor/q/tasks/42", plan); }

  FakeConsul consul;
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
               failed("failed index check for key, current modify index 8 != 7"),
               reply(200, task_entry(8)), reply(200, kAllApplied)}};
  CHECK(scene.change().value().modify_index == 8);
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
  Scene scene{{reply(200, task_entry(7)), failed("Permission denied", 1)}};
  CHECK(scene.change().error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE("many changes go in full transactions, and a missing task does not stop the others") {
  Scene scene{{failed("failed to check index, key doesn't exist", 2),  // of task 1
               reply(200, kAllApplied),                                // the others
               reply(404, "", 9),                                      // task 1
               reply(200, kAllApplied)}};                              // 32 and on
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
    return failed("failed index check for key, current modify index 8 != 7");
  };
  // The outcome of the first 32 cannot be read any more, since the reply to that reading is lost,
  // too; that leaves no doubt of the other 8.
  Scene sent{{undelivered(Delivery::kLost), undelivered(Delivery::kLost, "reset")}};
  const BulkResult lost = change_many(sent.queue, tasks(40), sent.plan, {}, 1);
  REQUIRE(lost.refused.size() == 40);
  for (const auto& [id, error] : lost.refused) {
    CHECK(error.code == (std::stoi(id) < 32 ? ErrorCode::kTimeout : ErrorCode::kUnavailable));
    CHECK(contains(error.message, "reset"));
  }
  // Both are refused, one after the other, and the reason cannot be read.
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
  Scene scene{{reply(200, kAllApplied), failed("Permission denied", 1)}};
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

}  // namespace lictor::client::test
