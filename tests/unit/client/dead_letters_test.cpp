#include <doctest/doctest.h>

#include "cli/model_consul.h"
#include "client/client.h"
#include "client/queue.h"
#include "client/task_info.h"
#include "fake_consul.h"
#include "unit/refusal.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kBuriedNow{1'795'228'350'949ms};

TEST_CASE("retry writes the record as its producer wrote it") {
  const auto record =
      retried_record(
          R"({"record":{"taskType":"T","taskTaken":"false","n":1.50,"taskAttempt":3},"reason":"failed"})",
          kBuriedNow, false)
          .value();
  CHECK(record == R"({"taskType":"T","taskTaken":"false","n":1.50})");
}

TEST_CASE("an unreadable record cannot be retried") {
  for (const char* letter : {R"({"raw":"not json"})", R"({"raw_base64":"AP8="})", "nonsense", "{}",
                             R"({"record":"text"})"}) {
    CAPTURE(letter);
    CHECK(refusal_of(retried_record(letter, kBuriedNow, false)).code == ErrorCode::kInvalid);
  }
}

TEST_CASE("a past expireAt is refused, or removed on request") {
  const auto letter = [](const std::string& expiry) {
    return R"({"record":{"taskType":"T","expireAt":)" + expiry + "}}";
  };
  const std::string past = letter("\"2026-11-21T02:00:00Z\"");
  CHECK(retried_record(past, kBuriedNow, false).error().code == ErrorCode::kInvalid);
  CHECK(*retried_record(past, kBuriedNow, true) == R"({"taskType":"T"})");
  const std::string future = letter("\"2026-11-22T02:00:00Z\"");
  CHECK(*retried_record(future, kBuriedNow, false) ==
        R"({"taskType":"T","expireAt":"2026-11-22T02:00:00Z"})");
}

TEST_CASE("a dead letter's task is the one whose key it tells, whatever the letter is called") {
  const wire::Layout layout = wire::Layout::under("lictor/", "q");
  const auto task_of = [&](const std::string& name, const std::string& value) {
    return view_dead_letter(layout, {layout.dead_prefix + name, value, {}, 0, 5, 6}).task_id;
  };
  const auto key = [](const std::string& text) {
    return R"({"key":")" + text + R"(","record":{}})";
  };
  CHECK(task_of("report~2", key("lictor/q/tasks/report~2")) == "report~2");
  CHECK(task_of("report,55", key("lictor/q/tasks/report")) == "report");
  CHECK(task_of("report,55,70", key("lictor/q/tasks/report,55")) == "report,55");
  CHECK(task_of("report", key("elsewhere/report")).empty());

  // Those of older versions: the number is no part of the task's id, unless the record says so.
  const auto old = [&](const std::string& name, const std::string& record) {
    return task_of(name, "{\"record\":" + record + "}");
  };
  CHECK(old("x", "{}") == "x");
  CHECK(old("x~2", "{}") == "x");
  CHECK(old("x~12", R"({"taskId":"x"})") == "x");
  CHECK(old("x~2", R"({"taskId":"x~2"})") == "x~2");
  CHECK(old("x~1", "{}") == "x~1");
  CHECK(old("x~02", "{}") == "x~02");
  CHECK(old("x~y", "{}") == "x~y");
  CHECK(old("x~", "{}") == "x~");
  CHECK(old("x~2", "[]") == "x");
}

// A queue in the model of Consul, its dead letters as lictor writes them.
struct Graveyard {
  void put(const std::string& key, const std::string& value) {
    REQUIRE(*store.replace(key, 0, value));
  }
  void bury(const std::string& name, const std::string& id) {
    put(layout.dead_prefix + name, R"({"key":")" + layout.task_key(id) +
                                       R"(","record":{"taskType":"T","taskPara":")" + name +
                                       R"("},"reason":"failed"})");
  }
  // What the task's key holds; empty: there is none.
  std::string task(const std::string& id) {
    const auto entry = store.get(layout.task_key(id));
    return entry && *entry ? (*entry)->value : "";
  }
  bool has_letter(const std::string& name) {
    return store.get(layout.dead_prefix + name)->has_value();
  }

  cli::test::ModelConsul consul;
  wire::Layout layout = wire::Layout::under("lictor/", "q");
  Store store{consul};
  lictor::Client client = test::client_of(consul);
};

TEST_CASE("ids that end in ~ and a number are ordinary ids, dead and again") {
  Graveyard yard;
  const std::vector<std::string> ids{"report", "report~1", "report~2", "report~3", "report,55"};
  for (const std::string& id : ids) yard.bury(id, id);
  const auto all = yard.client.retry_all({}).value();
  CHECK(all.refused.empty());
  CHECK(all.tasks.size() == ids.size());
  for (const std::string& id : ids) {
    CAPTURE(id);
    CHECK(contains(yard.task(id), '"' + id + '"'));  // its own record
    CHECK_FALSE(yard.has_letter(id));
  }
}

TEST_CASE("retry takes the newest dead letter of the task, or the letter that is called so") {
  Graveyard yard;
  yard.bury("report", "report");
  yard.bury("report,55", "report");
  yard.bury("report~2", "report~2");
  const auto shown = yard.client.show("report").value();
  REQUIRE(shown.size() == 2);
  CHECK(shown.back().id == "report,55");
  CHECK(shown.back().task_id == "report");
  CHECK(yard.client.retry("report")->id == "report,55");
  CHECK(contains(yard.task("report"), "report,55"));
  CHECK(yard.client.retry("report").error().code == ErrorCode::kConflict);
  CHECK(yard.has_letter("report"));

  yard.bury("x,7", "x");
  CHECK(yard.client.show("x,7")->front().task_id == "x");
  REQUIRE(yard.client.retry("x,7"));
  CHECK(yard.task("x,7").empty());
  CHECK(contains(yard.task("x"), "x,7"));

  yard.put(yard.layout.dead_prefix + "old", "{\"record\":{\"taskType\":\"T\"}}");
  yard.put(yard.layout.dead_prefix + "old~2", "{\"record\":{\"taskType\":\"T\",\"taskPara\":2}}");
  CHECK(yard.client.retry("old")->id == "old~2");
  CHECK(contains(yard.task("old"), "taskPara"));

  yard.put(yard.layout.dead_prefix + "far", R"({"key":"app/far","record":{"taskType":"T"}})");
  CHECK(yard.client.retry("far").error().code == ErrorCode::kInvalid);
  CHECK(yard.client.purge("far"));
}

}  // namespace
}  // namespace lictor::client
