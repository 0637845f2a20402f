#include "client/client.h"

#include <chrono>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "client/control.h"
#include "client/queue.h"
#include "fake_consul.h"
#include "unit/refusal.h"

namespace lictor::client::test {
namespace {

using namespace std::chrono_literals;
using http::Delivery;

TEST_CASE("a task is written under its id, and an existing id is a conflict") {
  FakeConsul consul{{reply(200, result("lictor/q/tasks/42", "{}", 9)),
                     failed("failed to set key, index is stale")}};
  auto client = client_of(consul);
  NewTask task{.type = "T", .id = "42", .parameters = {{"a", 1}}};
  const auto first = client.submit(task).value();
  CHECK(first.id == "42");
  CHECK(first.index == 9);
  CHECK(client.submit(task).error().code == ErrorCode::kConflict);
}

TEST_CASE("a bad task is refused before anything is sent") {
  FakeConsul consul{{}};
  auto client = client_of(consul);
  CHECK(client.submit({.type = ""}).error().code == ErrorCode::kInvalid);
  CHECK(client.submit({.type = "T", .id = "a//b"}).error().code == ErrorCode::kInvalid);
  CHECK(client.submit({.type = "T\xff"}).error().code == ErrorCode::kInvalid);
  for (const char* json : {R"({"x":1})", R"(["x"])"}) {
    auto parameters = nlohmann::json::parse(json);
    parameters.is_array() ? parameters[0] = "\xff" : parameters["\xff"] = 1;
    const auto refused = client.submit({.type = "T", .parameters = parameters});
    CHECK(
        contains(refusal_of(refused, ErrorCode::kInvalid), "expected strings and names in UTF-8"));
  }
  CHECK(client.submit({.type = "T", .max_attempts = 0}).error().code == ErrorCode::kInvalid);
  for (const Duration timeout : {Duration{-1}, Duration::min()}) {
    CHECK(client.submit({.type = "T", .timeout = timeout}).error().code == ErrorCode::kInvalid);
  }
  const double number = std::numeric_limits<double>::quiet_NaN();
  CHECK(contains(refusal_of(client.submit({.type = "T", .parameters = {{"x", {number}}}})).message,
                 "parameters: expected JSON, got NaN or infinity"));
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
  FakeConsul consul{{}};
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
  FakeConsul consul{{reply(200, result("lictor/q/tasks/42", "{}", 9))}};
  auto client = client_of(consul);
  REQUIRE(client.submit({.type = "T", .id = "42", .timeout = 1ns}));
  const auto body = nlohmann::json::parse(consul.asked.front().body);
  const auto record = base64_decode(body[0]["KV"]["Value"].get<std::string>());
  CHECK(contains(*record, R"("timeout":"0.001ms")"));
}

TEST_CASE("of many tasks each has its own outcome") {
  FakeConsul consul{{failed("failed to set key, index is stale", 1),
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
    return refusal_of(lictor::Client::open(options), ErrorCode::kInvalid);
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

constexpr WallTime kAt{1'795'228'350'949ms};

TEST_CASE("a request to step down keeps the other switches") {
  CHECK(with_step_down(R"({"paused": {"by":"x"},"step_down":{"id":"old"},"n":1.50})", "id", "me@h",
                       kAt) ==
        R"({"paused":{"by":"x"},"n":1.50,)"
        R"("step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(with_step_down("", "id", "me@h", kAt) ==
        R"({"step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(with_step_down("{}", "id", "me@h", kAt) == with_step_down("", "id", "me@h", kAt));
}

TEST_CASE("only a pause or a resume corrects an unreadable control key") {
  const auto said = [](const std::string& control, auto call) {
    FakeConsul consul{{reply(200, entry("k", control)), reply(200, "true")}};
    lictor::Client client = client_of(consul);
    const auto result = call(client);
    return std::pair{result.has_value() ? std::string{} : result.error().message,
                     consul.asked.size() > 1 ? consul.asked.back().body : std::string{}};
  };
  const auto pause = [](lictor::Client& client) { return client.pause("moving", "me@h"); };
  const auto resume = [](lictor::Client& client) { return client.resume("me@h"); };
  const auto step_down = [](lictor::Client& client) { return client.step_down(); };
  for (const char* control : {"[]", "nonsense", R"({"paused":17})"}) {
    CAPTURE(control);
    CHECK(said(control, pause).second.starts_with(R"({"paused":{"by":"me@h")"));
    CHECK(said(control, resume).second.starts_with(R"({"resumed":{"by":"me@h")"));
    const auto [error, written] = said(control, step_down);
    CHECK(contains(error, "the leader reads no request in it"));
    CHECK(written.empty());
  }
  CHECK(said("{}", resume).second.empty());  // nothing to do
  CHECK(contains(said(R"({"other":1})", step_down).second, "step_down"));
}

TEST_CASE("pause and resume record who did it, and keep the other switches") {
  const std::string paused = with_pause(R"({"n":1.50})", "me@h", kAt, "moving \"db\"");
  CHECK(paused == R"({"n":1.50,"paused":{"by":"me@h","at":"2026-11-21T02:32:30.949Z",)"
                  R"("reason":"moving \"db\""}})");
  const PauseState state = read_pause(paused);
  CHECK(state.paused);
  CHECK(state.by == "me@h");
  CHECK(state.at == kAt);
  CHECK(state.reason == "moving \"db\"");
  const std::string resumed = with_resume(paused, "you@h", kAt);
  CHECK(resumed == R"({"n":1.50,"resumed":{"by":"you@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK_FALSE(read_pause(resumed).paused);
}

TEST_CASE("switches without effect in the control key are reported") {
  for (const char* fine : {"", "{}", "nonsense", R"({"paused":true,"resumed":{"by":"x"}})",
                           R"({"step_down":null})", R"({"step_down":{"id":"1"}})"}) {
    CAPTURE(fine);
    CHECK(switches_without_effect(fine).empty());
  }
  CHECK(switches_without_effect(R"({"pause":true})") ==
        R"("pause" is no switch; did you mean "paused"?)");
  CHECK(switches_without_effect(R"({"other":true})") == R"("other" is no switch)");
  for (const char* odd :
       {R"({"step_down":"yes"})", R"({"step_down":{}})", R"({"step_down":{"id":1}})"}) {
    CHECK(switches_without_effect(odd).starts_with("step_down: expected an object with an \"id\""));
  }
}

TEST_CASE("a pause is read as the daemon reads it") {
  for (const char* on : {R"({"paused":true})", "nonsense"}) CHECK(read_pause(on).paused);
  for (const std::string off : {R"({"paused":false})", R"({"paused":null})", ""}) {
    CHECK_FALSE_MESSAGE(read_pause(off).paused, off);
  }
  CHECK(read_pause(R"({"paused":"yes"})").by ==
        "a control key that cannot be read (paused: expected true, false or an object, got "
        "\"yes\")");
}

// A queue, and the answers of its Consul.
struct Followed {
  explicit Followed(std::deque<http::Response> replies) : consul(std::move(replies)) {}
  Result<Ending> follow(std::optional<Duration> timeout = {}, std::uint64_t index = 9) {
    return client::follow(queue, "42", {.timeout = timeout, .index = index});
  }
  FakeConsul consul;
  Store store{consul};
  Queue queue{store, "q", wire::Layout::under("lictor/", "q")};
};

const std::string kTask = "lictor/q/tasks/42";
const std::string kDead = "lictor/q/dead/42";
const std::string kLetter = R"({"reason":"failed","error":"exit 3","attempts":3})";

const http::Response kNone = reply(404, "", 20);

http::Response task_at(std::uint64_t index) {
  return reply(200, entry(kTask, R"({"taskType":"T"})", index), index);
}
http::Response letter_at(std::uint64_t index) { return reply(200, entry(kDead, kLetter, index)); }

TEST_CASE("a task is done once a consistent read proves that its key is gone, or a new task's") {
  struct Row {
    std::string what;
    std::deque<http::Response> replies;
  };
  for (const Row& row :
       {Row{"gone", {task_at(9), kNone, kNone, kNone, no_names(), kNone}},
        Row{"gone in a deposed leader's view, and later",
            {task_at(9), kNone, task_at(9), kNone, kNone, kNone, no_names(), kNone}},
        Row{"a new task", {task_at(9), task_at(15), task_at(15), kNone, no_names(), kNone}}}) {
    CAPTURE(row.what);
    Followed scene{row.replies};
    CHECK(scene.follow()->how == Ending::How::kGone);
    CHECK(scene.consul.asked[2].target.ends_with("?consistent"));
    CHECK(scene.consul.all_asked());
  }
}

TEST_CASE("an older dead letter of the same id does not count") {
  Followed before{{kNone, letter_at(5), no_names(), kNone}};
  CHECK(before.follow(Duration::max())->how == Ending::How::kGone);
  Followed after{{kNone, letter_at(15), no_names()}};
  const auto ending = after.follow().value();
  REQUIRE(ending.how == Ending::How::kDead);
  CHECK(ending.task.error == "exit 3");
}

TEST_CASE("waiting ends with its timeout, and at once when a right is missing") {
  Followed late{{}};
  CHECK(late.follow(Duration::zero())->how == Ending::How::kTimedOut);
  Followed denied{{reply(403, "Permission denied")}};
  CHECK(denied.follow().error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE("at the time-out a claimed task is shown as running, without its leader as an orphan") {
  const auto seen = [](const std::string& leader_session) {
    const std::string claimed =
        R"({"taskType":"T","taskTaken":true,"taskAttempt":1,)"
        R"("taskClaim":{"node":"h","session":"s","nonce":"n","since":"2026-01-01T00:00:00Z"}})";
    const http::Response away = undelivered(http::Delivery::kNotSent);
    Followed scene{
        {reply(200, entry(kTask, claimed, 9), 9), reply(404, "", 9),  // the number of partitions
         reply(200, entry("lictor/q/leader", "{}", 5, leader_session)), away, away, away, away}};
    const auto ending = scene.follow(1s).value();
    CHECK(ending.how == Ending::How::kTimedOut);
    return ending.task.state;
  };
  CHECK(seen("s") == TaskState::kRunning);
  CHECK(seen("another") == TaskState::kOrphan);
}

TEST_CASE("the history gives the result, unless its record is older than the task") {
  const std::string done = R"({"record":{"taskType":"T"},"result":{"rows":7},"attempts":1})";
  Followed scene{{kNone, kNone, no_names(), reply(200, entry("lictor/q/done/42", done, 15))}};
  const auto ending = scene.follow().value();
  REQUIRE(ending.how == Ending::How::kDone);
  CHECK(ending.task.result == R"({"rows":7})");
  Followed older{{kNone, kNone, no_names(), reply(200, entry("lictor/q/done/42", done, 5))}};
  CHECK(older.follow()->how == Ending::How::kGone);
}

TEST_CASE("an unknown task is not found, and the latest trace of a known one counts") {
  Followed nothing{{kNone, kNone, no_names(), kNone}};
  CHECK(nothing.follow({}, 0).error().code == ErrorCode::kNotFound);
  Followed both{
      {kNone, letter_at(15), no_names(), reply(200, entry("lictor/q/done/42", "{}", 12))}};
  CHECK(both.follow({}, 0)->how == Ending::How::kDead);
}

}  // namespace

}  // namespace lictor::client::test
