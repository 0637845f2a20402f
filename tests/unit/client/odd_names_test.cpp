#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/model_consul.h"
#include "client/client.h"
#include "client/queue.h"
#include "client/schedules.h"
#include "fake_consul.h"
#include "unit/refusal.h"

// Producers name keys as they like, and Consul 1.21.5 and newer refuse many of these names in the
// path of a request. Everything that is done to one task works all the same.

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kIds{
    " a",  "a ",    "a b",    "a..b", "db7:8",
    "x@y", "r~2",   "\u00fc", "a+b",  "nightly@2026-11-24T09:30:00Z",
    "%41", "a/b c", "42"};
const std::string kOddRecord = R"({"taskType":"T"})";

// A queue in a Consul that refuses names, and what was refused of what was asked.
struct OddNames {
  cli::test::ModelConsul consul{"dev", true};
  wire::Layout layout = wire::Layout::under("lictor/", "q");
  Store store{consul};
  lictor::Client client = [&] {
    auto impl = std::make_unique<lictor::Client::Impl>(consul, "q", layout);
    impl->cancel_marks.stay = {};
    return lictor::Client{std::move(impl)};
  }();
};

TEST_CASE("a task of any name can be shown, waited for and cancelled") {
  OddNames scene;
  for (const std::string& id : kIds) {
    CAPTURE(id);
    scene.consul.put(scene.layout.task_key(id), kOddRecord);
    const auto shown = scene.client.show(id);
    REQUIRE_MESSAGE(shown, (shown ? "" : shown.error().message));
    CHECK(shown->front().state == TaskState::kWaiting);
    const auto waited = scene.client.wait(id, {.timeout = 1ms}).value();
    CHECK(waited.how == Ending::How::kTimedOut);
    REQUIRE(scene.client.cancel(id));
    CHECK_FALSE(*scene.store.get(scene.layout.task_key(id)));
    CHECK(scene.client.wait(id).error().code == ErrorCode::kNotFound);
    CHECK(scene.client.retry(id).error().code == ErrorCode::kNotFound);
    CHECK(scene.client.show("no " + id).error().code == ErrorCode::kNotFound);
  }
  CHECK(scene.consul.refused == 0);
}

TEST_CASE("a dead letter of any name can be shown, retried and purged") {
  OddNames scene;
  for (const std::string& id : kIds) {
    CAPTURE(id);
    const std::string letter = R"({"key":")" + scene.layout.task_key(id) +
                               R"(","record":{"taskType":"T"},"reason":"failed"})";
    scene.consul.put(scene.layout.dead_prefix + id, letter);
    scene.consul.put(scene.layout.dead_prefix + id + ",57", letter);
    const auto shown = scene.client.show(id).value();
    CHECK(shown.size() == 2);
    CHECK(scene.client.retry(id)->id == id + ",57");
    CHECK((*scene.store.get(scene.layout.task_key(id)))->value == kOddRecord);
    REQUIRE(scene.client.purge(id));
    CHECK(scene.client.purge(id).error().code == ErrorCode::kNotFound);
  }
  CHECK(scene.consul.refused == 0);
}

TEST_CASE("a schedule of any name can be added, paused, run and removed") {
  OddNames scene;
  Schedules schedules{scene.store, scene.layout};
  for (const std::string name : {"nightly", "n b", "n:b", "\u00fc", "r~2"}) {
    CAPTURE(name);
    REQUIRE(schedules.add(name, R"({"every":"1h","task":{"taskType":"T"}})"));
    CHECK(schedules.add(name, R"({"every":"1h","task":{"taskType":"T"}})").error().code ==
          ErrorCode::kConflict);
    CHECK(schedules.set_paused(name, true).value());
    const auto id = schedules.run(name, WallTime{1'795'228'350'949ms}).value();
    CHECK(id == name + "/20261121T023230Z");
    CHECK(scene.client.show(id));
    CHECK(name_note(name).empty() == (name == "nightly"));
    CHECK(schedules.remove(name));
  }
  CHECK(scene.consul.refused == 0);
}

TEST_CASE("a missing right is told from a missing key, whatever its name") {
  const auto gone = test::reply(409, test::txn_error(0, "key doesn't exist"));
  test::FakeConsul denied{{gone, test::reply(403, "Permission denied")}};
  CHECK(Store{denied}.get("l/q/dead/a b").error().code == ErrorCode::kPermissionDenied);
  CHECK(denied.asked.back().target == "/v1/kv/l/q/dead/a?consistent");
  test::FakeConsul missing{{gone, test::reply(404, "", 9)}};
  CHECK_FALSE(*Store{missing}.get("l/q/dead/a b"));
}

TEST_CASE("a name that Consul refuses is not to be tried again") {
  test::FakeConsul consul{{test::reply(500, "invalid key name, use only ...")}};
  const Error error = refusal_of(Store{consul}.list("odd queue/tasks/"));
  CHECK(error.code == ErrorCode::kFailed);
  CHECK_FALSE(test::contains(error.message, "try again"));
}

}  // namespace
}  // namespace lictor::client
