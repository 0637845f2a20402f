#include "client/client.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "fake_consul.h"
#include "unit/refusal.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;
using http::Delivery;
using test::client_of;
using test::contains;
using test::reply;
using test::result;
using test::txn_error;
using test::undelivered;

TEST_CASE("a task is written under its id, and an existing id is a conflict") {
  test::FakeConsul consul{{reply(200, result("lictor/q/tasks/42", "{}", 9)),
                           reply(409, txn_error(0, "failed to set key, index is stale"))}};
  auto client = client_of(consul);
  NewTask task{.type = "T", .id = "42", .parameters = {{"a", 1}}};
  const auto first = client.submit(task).value();
  CHECK(first.id == "42");
  CHECK(first.index == 9);
  CHECK(client.submit(task).error().code == ErrorCode::kConflict);
}

TEST_CASE("a bad task is refused before anything is sent") {
  test::FakeConsul consul{{}};
  auto client = client_of(consul);
  CHECK(client.submit({.type = ""}).error().code == ErrorCode::kInvalid);
  CHECK(client.submit({.type = "T", .id = "a//b"}).error().code == ErrorCode::kInvalid);
  CHECK(client.submit({.type = "T\xff"}).error().code == ErrorCode::kInvalid);
  for (const char* json : {R"({"x":1})", R"(["x"])"}) {
    auto parameters = nlohmann::json::parse(json);
    parameters.is_array() ? parameters[0] = "\xff" : parameters["\xff"] = 1;
    const Error refused = refusal_of(client.submit({.type = "T", .parameters = parameters}));
    CHECK(refused.code == ErrorCode::kInvalid);
    CHECK(contains(refused.message, "parameters: expected strings and names in UTF-8"));
  }
  CHECK(client.submit({.type = "T", .max_attempts = 0}).error().code == ErrorCode::kInvalid);
  CHECK(client.submit({.type = "T", .timeout = -1ns}).error().code == ErrorCode::kInvalid);
  for (const std::size_t levels : {513, 200'000}) {
    NewTask task{.type = "T"};
    task.parameters = nlohmann::json::parse(std::string(levels, '[') + std::string(levels, ']'));
    CHECK(contains(refusal_of(client.submit(task)).message,
                   "parameters: expected at most 512 levels"));
  }
  CHECK(client.submit_record("not json").error().code == ErrorCode::kInvalid);
  CHECK(consul.asked.empty());
}

TEST_CASE("an empty id and a folder's id are refused") {
  test::FakeConsul consul{{}};
  auto client = client_of(consul);
  for (const char* id : {"", "a/"}) {
    CHECK(client.show(id).error().code == ErrorCode::kInvalid);
    CHECK(client.cancel(id).error().code == ErrorCode::kInvalid);
    CHECK(client.retry(id).error().code == ErrorCode::kInvalid);
    CHECK(client.purge(id).error().code == ErrorCode::kInvalid);
    CHECK(client.wait(id).error().code == ErrorCode::kInvalid);
  }
}

TEST_CASE("a time-out below a microsecond is rounded up, since zero means none") {
  test::FakeConsul consul{{reply(200, result("lictor/q/tasks/42", "{}", 9))}};
  auto client = client_of(consul);
  REQUIRE(client.submit({.type = "T", .id = "42", .timeout = 1ns}));
  const auto body = nlohmann::json::parse(consul.asked.front().body);
  const auto record = base64_decode(body[0]["KV"]["Value"].get<std::string>());
  CHECK(contains(*record, R"("timeout":"0.001ms")"));
}

TEST_CASE("of many tasks each has its own outcome") {
  test::FakeConsul consul{{reply(409, txn_error(1, "failed to set key, index is stale")),
                           reply(200, result("lictor/q/tasks/a", "{}", 9))}};
  auto client = client_of(consul);
  const std::vector<NewTask> tasks{{.type = "T", .id = "a"},
                                   {.type = "", .id = "bad"},
                                   {.type = "T", .id = "taken"},
                                   {.type = "T", .id = "c"}};
  std::size_t told = 0;
  const auto results = client.submit_many(
      tasks, [&](std::size_t done, std::size_t total) { told = done * 100 + total; });
  REQUIRE(results.size() == 4);
  CHECK(results[0]->index == 9);
  CHECK(results[1].error().code == ErrorCode::kInvalid);
  CHECK(results[2].error().code == ErrorCode::kConflict);
  CHECK(results[3]->id == "c");
  CHECK(told == 404);
  CHECK(consul.all_asked());
}

TEST_CASE("bad options are refused by name") {
  const auto error_of = [](const ClientOptions& options) {
    const Error error = refusal_of(lictor::Client::open(options));
    CHECK(error.code == ErrorCode::kInvalid);
    return error.message;
  };
  CHECK(contains(error_of({.root = "lictor"}), "root"));
  CHECK(contains(error_of({.queue = "a/b"}), "queue"));
  CHECK(contains(error_of({.tasks_prefix = "tasks"}), "tasks_prefix"));
  CHECK(contains(error_of({.leader_key = "leader/"}), "leader_key"));
  for (const char* pointer : {"taskPara", "/a~", "/a~2"}) {
    CHECK(contains(error_of({.serialize_by = pointer}), "serialize_by: expected a JSON pointer"));
  }
  CHECK(contains(error_of({.addresses = {"ftp://x"}}), "ftp://x"));
  CHECK(lictor::Client::open({.addresses = {"http://127.0.0.1:1"}, .use_environment = false}));
}

}  // namespace
}  // namespace lictor::client
