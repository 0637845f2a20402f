#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "client/client.h"
#include "client/task_id.h"
#include "fake_consul.h"

namespace lictor::client {
namespace {

using test::contains;
using test::entry;
using test::listing;
using test::reply;
using test::result;
using test::txn_error;

const std::string kBad = "bad\xef\xbf\xbdnow";  // as Consul lists a key that is not UTF-8

std::string task_entry(const std::string& id, std::uint64_t index) {
  return entry("lictor/q/tasks/" + id, R"({"taskType":"T"})", index);
}

// The answers to a listing of the tasks, up to that of the key that reads as kBad.
std::deque<http::Response> listed(http::Response single) {
  return {reply(200, listing(task_entry(kBad, 7), task_entry("good", 8)), 9),
          reply(404, "", 9),  // the folder
          reply(404, "", 9),  // the number of partitions
          reply(404, "", 9),  // the leader
          std::move(single)};
}

struct Unnameable {
  explicit Unnameable(std::deque<http::Response> replies) : consul(std::move(replies)) {}

  test::FakeConsul consul;
  lictor::Client client{
      std::make_unique<lictor::Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"))};
};

TaskState state_of(http::Response single, const std::string& id) {
  Unnameable scene{listed(std::move(single))};
  TaskFilter filter;
  filter.type = "T";
  scene.consul.add(reply(404, "", 9));  // the dead letters, and their folder
  scene.consul.add(reply(404, "", 9));
  const auto all = scene.client.list(filter);
  REQUIRE(all);
  REQUIRE(all->tasks.size() == 2);
  return all->tasks[all->tasks[0].id == id ? 0 : 1].state;
}

TEST_CASE("a key that is listed but cannot be read is unnameable") {
  const auto gone = reply(409, txn_error(0, "key doesn't exist"));
  CHECK(state_of(gone, kBad) == TaskState::kUnnameable);
  CHECK(state_of(gone, "good") == TaskState::kWaiting);
  // Somebody may have named a task so; and another's key may read the same.
  const std::string key = "lictor/q/tasks/" + kBad;
  CHECK(state_of(reply(200, result(key, "{}", 7)), kBad) == TaskState::kWaiting);
  CHECK(state_of(reply(200, result(key, "{}", 6)), kBad) == TaskState::kUnnameable);
  CHECK(state_of(reply(403, "Permission denied"), kBad) == TaskState::kWaiting);
}

TEST_CASE("dead purge --all refuses unnameable dead letters, too") {
  const auto letter = [](const std::string& id, std::uint64_t index) {
    return entry("lictor/q/dead/" + id, R"({"reason":"failed"})", index);
  };
  Unnameable scene{{reply(200, listing(letter(kBad, 7), letter("good", 8)), 9),
                    reply(404, "", 9),  // the folder
                    reply(409, txn_error(0, "key doesn't exist")),
                    reply(200, R"({"Results":null,"Errors":null})")}};
  const auto purged = scene.client.purge_all({});
  REQUIRE(purged);
  REQUIRE(purged->tasks.size() == 1);
  CHECK(purged->tasks.front().id == "good");
  REQUIRE(purged->refused.size() == 1);
  CHECK(contains(purged->refused.front().error.message, "/v1/kv/lictor/q/dead/bad%FFnow"));
}

TEST_CASE("cancel --all refuses unnameable tasks without a try") {
  for (const bool waiting : {true, false}) {
    Unnameable scene{listed(reply(409, txn_error(0, "key doesn't exist")))};
    TaskFilter filter;
    if (waiting) filter.state = TaskState::kWaiting;
    if (!waiting) scene.consul.add(reply(404, "", 9));  // the dead letters
    if (!waiting) scene.consul.add(reply(404, "", 9));
    scene.consul.add(reply(404, "", 9));  // the number of partitions, and the leader
    scene.consul.add(reply(404, "", 9));
    scene.consul.add(reply(200, R"({"Results":null,"Errors":null})"));
    const auto done = scene.client.cancel_all(filter);
    REQUIRE(done);
    REQUIRE(done->tasks.size() == 1);
    CHECK(done->tasks[0].id == "good");
    CHECK_FALSE(contains(scene.consul.asked.back().body, kBad));
    REQUIRE(done->refused.size() == (waiting ? 0 : 1));
    if (waiting) continue;
    CHECK(done->refused[0].error.code == ErrorCode::kFailed);
    CHECK(contains(done->refused[0].error.message, "bad%FFnow"));
  }
}

TEST_CASE("naming a key that is not UTF-8 gives advice on how to delete it") {
  for (const std::string& id : {kBad, std::string{"bad\xffnow"}}) {
    // The task, the dead letters, the history: each by a transaction.
    const auto none = reply(409, txn_error(0, "key doesn't exist"));
    const auto may = reply(404, "", 9);  // the token may read the folder
    Unnameable shown{{none, may, none, may, test::no_names(), none, may}};
    const auto show = shown.client.show(id);
    REQUIRE_FALSE(show);
    CHECK(show.error().code == ErrorCode::kNotFound);
    CHECK(contains(show.error().message, "not UTF-8"));
    CHECK(contains(show.error().message, "/v1/kv/lictor/q/tasks/bad%FFnow"));

    Unnameable cancelled{{may, may, none, may, none, may, test::no_names(), none, may}};
    const auto cancel = cancelled.client.cancel(id);
    REQUIRE_FALSE(cancel);
    CHECK(cancel.error().code == ErrorCode::kNotFound);
    CHECK(contains(cancel.error().message, "/v1/kv/lictor/q/tasks/bad%FFnow"));
  }
  const wire::Layout layout = wire::Layout::under("lictor/", "q");
  CHECK(unnameable_hint(layout.tasks_prefix, "good").empty());
  CHECK(contains(unnameable_hint(layout.tasks_prefix, "a\xfe\xef\xbf\xbd"), "/a%FE%EF%BF%BD"));
}

}  // namespace
}  // namespace lictor::client
