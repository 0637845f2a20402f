#include "client/control.h"

#include <doctest/doctest.h>

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kAt{1'795'228'350'949ms};

TEST_CASE("a request to step down leaves the other switches as they are") {
  CHECK(*with_step_down(R"({"paused": {"by":"x"},"step_down":{"id":"old"},"n":1.50})", "id", "me@h",
                        kAt) ==
        R"({"paused":{"by":"x"},"n":1.50,)"
        R"("step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(*with_step_down("", "id", "me@h", kAt) ==
        R"({"step_down":{"id":"id","by":"me@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK(*with_step_down("{}", "id", "me@h", kAt) == *with_step_down("", "id", "me@h", kAt));
}

TEST_CASE("a control key that somebody has spoilt is not overwritten") {
  CHECK(with_step_down("[]", "id", "me@h", kAt).error().code == ErrorCode::kInvalid);
}

TEST_CASE("pausing and resuming leave a trace, and the other switches as they are") {
  const std::string paused = *with_pause(R"({"n":1.50})", "me@h", kAt, "moving \"db\"");
  CHECK(paused == R"({"n":1.50,"paused":{"by":"me@h","at":"2026-11-21T02:32:30.949Z",)"
                  R"("reason":"moving \"db\""}})");
  const PauseState state = read_pause(paused);
  CHECK(state.paused);
  CHECK(state.by == "me@h");
  CHECK(state.at == kAt);
  CHECK(state.reason == "moving \"db\"");
  const std::string resumed = *with_resume(paused, "you@h", kAt);
  CHECK(resumed == R"({"n":1.50,"resumed":{"by":"you@h","at":"2026-11-21T02:32:30.949Z"}})");
  CHECK_FALSE(read_pause(resumed).paused);
}

TEST_CASE("a pause is read as the daemon reads it") {
  CHECK(read_pause(R"({"paused":true})").paused);
  CHECK_FALSE(read_pause(R"({"paused":false})").paused);
  CHECK_FALSE(read_pause(R"({"paused":null})").paused);
  CHECK_FALSE(read_pause("nonsense").paused);
  CHECK_FALSE(read_pause("").paused);
}

}  // namespace
}  // namespace lictor::client
