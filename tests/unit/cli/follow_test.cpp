#include "cli/follow.h"

#include <string>

#include <doctest/doctest.h>

#include "harness.h"

namespace lictor::cli {
namespace {

using test::entry;
using test::kNoLetters;
using test::reply;
using test::Scene;

const std::string kTask = "lictor/q/tasks/42";
const std::string kDead = "lictor/q/dead/42";
const std::string kLetter = R"({"reason":"failed","error":"exit 3","attempts":3})";

TEST_CASE("a task that is gone without a dead letter is done") {
  Scene scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9), reply(404, "", 20),
               reply(404, "", 20), reply(404, "", 20), reply(409, kNoLetters)}};
  const auto ending = follow(scene.client, "42", 9, {});
  REQUIRE(ending);
  CHECK_FALSE(ending->dead);
  CHECK(scene.consul.all_asked());
}

TEST_CASE("that a key is gone counts only by a consistent read") {
  Scene scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9),
               reply(404, "", 20),  // a deposed leader's view
               reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9), reply(404, "", 30),
               reply(404, "", 30), reply(404, "", 30), reply(409, kNoLetters)}};
  REQUIRE(follow(scene.client, "42", 9, {}));
  CHECK(scene.consul.asked[2].target.ends_with("?consistent"));
  CHECK(scene.consul.all_asked());
}

TEST_CASE("a dead letter from before the task is not its own") {
  Scene before{{reply(404, "", 20), reply(200, entry(kDead, kLetter, 5)), reply(409, kNoLetters)}};
  CHECK_FALSE(follow(before.client, "42", 9, {})->dead);
  Scene after{{reply(404, "", 20), reply(200, entry(kDead, kLetter, 15)), reply(409, kNoLetters)}};
  const auto ending = follow(after.client, "42", 9, {});
  REQUIRE(ending->dead);
  CHECK(ending->dead->error == "exit 3");
}

TEST_CASE("another task under the same id means that ours is gone") {
  Scene scene{{reply(200, entry(kTask, R"({"taskType":"T"})", 9), 9),
               reply(200, entry(kTask, R"({"taskType":"T"})", 15), 15),
               reply(200, entry(kTask, R"({"taskType":"T"})", 15), 15), reply(404, "", 20),
               reply(409, kNoLetters)}};
  REQUIRE(follow(scene.client, "42", 9, {}));
  CHECK(scene.consul.all_asked());
}

TEST_CASE("waiting ends with its time, and a missing right at once") {
  Scene late{{}};
  const auto ending = follow(late.client, "42", 9, Duration::zero());
  REQUIRE_FALSE(ending);
  CHECK(ending.error().code == ErrorCode::kFailed);
  Scene denied{{reply(403, "Permission denied")}};
  CHECK(follow(denied.client, "42", 9, {}).error().code == ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace lictor::cli
