#include <string>

#include <doctest/doctest.h>

#include "client/queue.h"
#include "fake_consul.h"

namespace lictor::client {
namespace {

using test::entry;
using test::no_names;
using test::reply;
using test::undelivered;
using namespace std::chrono_literals;

// What Consul answers, and a queue of it.
struct Followed {
  explicit Followed(std::deque<http::Response> replies) : consul(std::move(replies)) {}
  Result<Ending> follow(std::optional<Duration> timeout = {}, std::uint64_t index = 9) {
    return client::follow(queue, "42", {.timeout = timeout, .index = index});
  }
  test::FakeConsul consul;
  Store store{consul};
  Queue queue{store, "q", wire::Layout::under("lictor/", "q")};
};

const std::string kTask = "lictor/q/tasks/42";
const std::string kDead = "lictor/q/dead/42";
const std::string kLetter = R"({"reason":"failed","error":"exit 3","attempts":3})";

TEST_CASE("a task that is gone without a dead letter is done") {
  Followed scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9), reply(404, "", 20),
                  reply(404, "", 20), reply(404, "", 20), no_names(), reply(404, "", 20)}};
  const auto ending = scene.follow().value();
  CHECK(ending.how == Ending::How::kGone);
  CHECK(scene.consul.all_asked());
}

TEST_CASE("only a consistent read proves that a key is gone") {
  Followed scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9),
                  reply(404, "", 20),  // a deposed leader's view
                  reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9), reply(404, "", 30),
                  reply(404, "", 30), reply(404, "", 30), no_names(), reply(404, "", 20)}};
  REQUIRE(scene.follow());
  CHECK(scene.consul.asked[2].target.ends_with("?consistent"));
  CHECK(scene.consul.all_asked());
}

TEST_CASE("an older dead letter of the same id does not count") {
  Followed before{
      {reply(404, "", 20), reply(200, entry(kDead, kLetter, 5)), no_names(), reply(404, "", 20)}};
  CHECK(before.follow()->how == Ending::How::kGone);
  Followed after{{reply(404, "", 20), reply(200, entry(kDead, kLetter, 15)), no_names()}};
  const auto ending = after.follow().value();
  REQUIRE(ending.how == Ending::How::kDead);
  CHECK(ending.task.error == "exit 3");
}

TEST_CASE("a new task under the same id means that the old one has ended") {
  Followed scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9),
                  reply(200, entry(kTask, R"({"taskType":"T"})", 15), 15),
                  reply(200, entry(kTask, R"({"taskType":"T"})", 15), 15), reply(404, "", 20),
                  no_names(), reply(404, "", 20)}};
  REQUIRE(scene.follow());
  CHECK(scene.consul.all_asked());
}

TEST_CASE("waiting ends with its timeout, and at once when a right is missing") {
  Followed late{{}};
  const auto ending = late.follow(Duration::zero()).value();
  CHECK(ending.how == Ending::How::kTimedOut);
  Followed denied{{reply(403, "Permission denied")}};
  CHECK(denied.follow().error().code == ErrorCode::kPermissionDenied);
}

TEST_CASE(
    "at the time-out a claimed task is reported as running, or as an orphan without its leader") {
  const auto seen = [](const std::string& leader_session) {
    const std::string claimed =
        R"({"taskType":"T","taskTaken":true,"taskAttempt":1,)"
        R"("taskClaim":{"node":"h","session":"s","nonce":"n","since":"2026-01-01T00:00:00Z"}})";
    Followed scene{{reply(200, entry(kTask, claimed, 9), 9),
                    reply(404, "", 9),  // the number of partitions
                    reply(200, entry("lictor/q/leader", "{}", 5, leader_session)),
                    undelivered(http::Delivery::kNotSent), undelivered(http::Delivery::kNotSent),
                    undelivered(http::Delivery::kNotSent), undelivered(http::Delivery::kNotSent)}};
    const auto ending = scene.follow(1s).value();
    CHECK(ending.how == Ending::How::kTimedOut);
    return ending.task.state;
  };
  CHECK(seen("s") == TaskState::kRunning);
  CHECK(seen("another") == TaskState::kOrphan);
}

TEST_CASE("the history gives the result, unless its record is older than the task") {
  const std::string done = R"({"record":{"taskType":"T"},"result":{"rows":7},"attempts":1})";
  Followed scene{{reply(404, "", 20), reply(404, "", 20), no_names(),
                  reply(200, entry("lictor/q/done/42", done, 15))}};
  const auto ending = scene.follow().value();
  REQUIRE(ending.how == Ending::How::kDone);
  CHECK(ending.task.result == R"({"rows":7})");
  Followed older{{reply(404, "", 20), reply(404, "", 20), no_names(),
                  reply(200, entry("lictor/q/done/42", done, 5))}};
  CHECK(older.follow()->how == Ending::How::kGone);
}

TEST_CASE("an unknown task is not found, and the latest trace of a known one counts") {
  Followed nothing{{reply(404, "", 20), reply(404, "", 20), no_names(), reply(404, "", 20)}};
  CHECK(nothing.follow({}, 0).error().code == ErrorCode::kNotFound);
  Followed both{{reply(404, "", 20), reply(200, entry(kDead, kLetter, 15)), no_names(),
                 reply(200, entry("lictor/q/done/42", "{}", 12))}};
  CHECK(both.follow({}, 0)->how == Ending::How::kDead);
}

}  // namespace
}  // namespace lictor::client
