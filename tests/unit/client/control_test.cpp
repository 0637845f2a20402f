#include "client/control.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "client/client.h"
#include "fake_consul.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

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
    test::FakeConsul consul{
        {test::reply(200, test::entry("k", control)), test::reply(200, "true")}};
    lictor::Client client = test::client_of(consul);
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
    CHECK(error.find("the leader reads no request in it") != std::string::npos);
    CHECK(written.empty());
  }
  CHECK(said("{}", resume).second.empty());  // nothing to do
  CHECK(said(R"({"other":1})", step_down).second.find("step_down") != std::string::npos);
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
  CHECK(read_pause(R"({"paused":true})").paused);
  CHECK_FALSE(read_pause(R"({"paused":false})").paused);
  CHECK_FALSE(read_pause(R"({"paused":null})").paused);
  CHECK(read_pause("nonsense").paused);
  CHECK(read_pause(R"({"paused":"yes"})").by ==
        "a control key that cannot be read (paused: expected true, false or an object, got "
        "\"yes\")");
  CHECK_FALSE(read_pause("").paused);
}

}  // namespace
}  // namespace lictor::client
