#include <optional>
#include <set>

#include "cli/model_consul.h"
#include "client/client.h"
#include "client/queue.h"
#include "client/schedules.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "fake_consul.h"
#include "unit/refusal.h"

namespace lictor::client::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("ids are in the order of creation, within a millisecond and if the clock steps back") {
  TaskIds ids{1};
  const WallTime now{1'795'228'350'949ms};
  std::string last;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.next(now);
    CHECK(id > last);
    last = id;
  }
  CHECK(ids.next(now + 1ms) > last);
  const std::string first = ids.next(WallTime{1'795'228'350'949ms});
  CHECK(ids.next(WallTime{1'000'000ms}) > first);
}

TEST_CASE("an id is milliseconds in hexadecimal digits and random bits") {
  const std::string id = TaskIds{1}.next(WallTime{1'795'228'350'949ms});
  CHECK(id.size() == 29);
  CHECK(id.starts_with("01a1fbf2b9e5-"));
  CHECK(id != TaskIds{2}.next(WallTime{1'795'228'350'949ms}));
  CHECK(id_fault(id).empty());
}

TEST_CASE("an id that no HTTP client could reach is refused") {
  for (const char* good : {"42", "a/b", "db7:8 x", "\u00fcber", "a.b", "..a", "~", "a~", "~2",
                           "a~1", "a~2", "a/b~301", "a,7"}) {
    CAPTURE(good);
    CHECK(id_fault(good).empty());
  }
  for (const std::string bad : {"", "/a", "a/", "a//b", "./a", "a/../b", "..", "a\nb", "\x1b[31m",
                                "\xff", "a\u00a0b", "a\u2028", "a\u202eb"}) {
    CAPTURE(bad);
    CHECK_FALSE(id_fault(bad).empty());
  }
  CHECK_FALSE(id_fault(std::string(513, 'a')).empty());
}

const std::string kBad = "bad\xef\xbf\xbdnow";  // as Consul lists a key that is not UTF-8
constexpr const char* kBadPath = "bad%FFnow";
constexpr const char* kRecordOfT = R"({"taskType":"T"})";

// A queue with the tasks "good" and kBad.
struct Unnameable {
  Unnameable() {
    consul.put_bytes(std::string{"lictor/q/tasks/"} + kBadPath, kRecordOfT);
    consul.put("lictor/q/tasks/good", kRecordOfT);
  }
  // The states of the tasks listed under this id.
  std::multiset<TaskState> states(const std::string& id) {
    const auto listed = client.list().value();
    std::multiset<TaskState> states;
    for (const TaskInfo& task : listed.tasks) {
      if (task.id == id) states.insert(task.state);
    }
    return states;
  }

  cli::test::ModelConsul consul;
  lictor::Client client = client_of(consul);
};

TEST_CASE("a key that is listed but cannot be read is unnameable") {
  Unnameable scene;
  CHECK(scene.states(kBad) == std::multiset{TaskState::kUnnameable});
  CHECK(scene.states("good") == std::multiset{TaskState::kWaiting});
  // Another client may have named a task so that its key reads the same.
  scene.consul.put("lictor/q/tasks/" + kBad, kRecordOfT);
  CHECK(scene.states(kBad) == std::multiset{TaskState::kWaiting, TaskState::kUnnameable});
  scene.consul.refuse = [](const net::Request& request) -> std::optional<http::Response> {
    if (!request.target.starts_with("/v1/txn")) return std::nullopt;
    return reply(403, "Permission denied");
  };
  CHECK(scene.states(kBad) == std::multiset{TaskState::kWaiting, TaskState::kWaiting});
}

TEST_CASE("dead purge --all refuses unnameable dead letters, too") {
  Unnameable scene;
  scene.consul.put_bytes(std::string{"lictor/q/dead/"} + kBadPath, R"({"reason":"failed"})");
  scene.consul.put("lictor/q/dead/good", R"({"reason":"failed"})");
  const auto purged = scene.client.purge_all({}).value();
  REQUIRE(purged.tasks.size() == 1);
  CHECK(purged.tasks.front().id == "good");
  REQUIRE(purged.refused.size() == 1);
  CHECK(contains(purged.refused.front().error.message, "/v1/kv/lictor/q/dead/bad%FFnow"));
}

TEST_CASE("cancel --all refuses unnameable tasks without a try") {
  for (const bool waiting : {true, false}) {
    Unnameable scene;
    TaskFilter filter;
    if (waiting) filter.state = TaskState::kWaiting;
    const auto done = scene.client.cancel_all(filter).value();
    REQUIRE(done.tasks.size() == 1);
    CHECK(done.tasks[0].id == "good");
    CHECK(scene.states(kBad).size() == 1);
    REQUIRE(done.refused.size() == (waiting ? 0 : 1));
    if (waiting) continue;
    CHECK(done.refused[0].error.code == ErrorCode::kFailed);
    CHECK(contains(done.refused[0].error.message, kBadPath));
  }
}

TEST_CASE("naming a key that is not UTF-8 gives advice on how to delete it") {
  Unnameable scene;
  for (const std::string& id : {kBad, std::string{"bad\xffnow"}}) {
    for (const auto& refused : {scene.client.show(id).map([](const auto&) {}),
                                scene.client.cancel(id).map([](const auto&) {})}) {
      const std::string advice = refusal_of(refused, ErrorCode::kNotFound);
      CHECK(missing_in(advice, {"not UTF-8", "/v1/kv/lictor/q/tasks/bad%FFnow"}) == "");
    }
  }
  CHECK(unnameable_hint("lictor/q/tasks/", "good").empty());
  CHECK(contains(unnameable_hint("lictor/q/tasks/", "a\xfe\xef\xbf\xbd"), "/a%FE%EF%BF%BD"));
}

// Producers name keys as they like, and Consul 1.21.5 and newer refuse many of these names in the
// path of a request. Every command about one task still works.
const std::vector<std::string> kIds{
    " a",  "a ",    "a b",    "a..b", "db7:8",
    "x@y", "r~2",   "\u00fc", "a+b",  "nightly@2026-11-24T09:30:00Z",
    "%41", "a/b c", "42"};
// A queue in a Consul that refuses names, and the refused requests.
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
    scene.consul.put(scene.layout.task_key(id), kRecordOfT);
    const auto shown = scene.client.show(id);
    REQUIRE_MESSAGE(shown, (shown ? "" : shown.error().message));
    CHECK(shown->front().state == TaskState::kWaiting);
    CHECK(scene.client.wait(id, {.timeout = 1ms}).value().how == Ending::How::kTimedOut);
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
    CHECK(scene.client.show(id).value().size() == 2);
    CHECK(scene.client.retry(id)->id == id + ",57");
    CHECK((*scene.store.get(scene.layout.task_key(id)))->value == kRecordOfT);
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

TEST_CASE("a missing right differs from a missing key, whatever its name") {
  const auto gone = failed("key doesn't exist");
  FakeConsul denied{{gone, reply(403, "Permission denied")}};
  CHECK(Store{denied}.get("l/q/dead/a b").error().code == ErrorCode::kPermissionDenied);
  CHECK(denied.asked.back().target == "/v1/kv/l/q/dead/a?consistent");
  FakeConsul missing{{gone, reply(404, "", 9)}};
  CHECK_FALSE(*Store{missing}.get("l/q/dead/a b"));
}

TEST_CASE("a name that Consul refuses is not to be tried again") {
  FakeConsul consul{{reply(500, "invalid key name, use only ...")}};
  const auto refused = Store{consul}.list("odd queue/tasks/");
  CHECK_FALSE(contains(refusal_of(refused, ErrorCode::kFailed), "try again"));
}

constexpr WallTime kBuriedNow{1'795'228'350'949ms};

TEST_CASE("retry writes the record as its producer wrote it") {
  const std::string record = R"({"taskType":"T","taskTaken":"false","n":1.50)";
  const std::string letter = R"({"record":)" + record + R"(,"taskAttempt":3},"reason":"failed"})";
  CHECK(*retried_record(letter, kBuriedNow, false) == record + '}');
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

TEST_CASE("a dead letter's task is the one whose key it names, whatever the letter is called") {
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
  CHECK(task_of("x~2", R"({"record":{}})") == "x~2");
}

// A queue whose dead letters are as lictor writes them.
struct Graveyard : OddNames {
  void bury(const std::string& name, const std::string& id) {
    consul.put(layout.dead_prefix + name, R"({"key":")" + layout.task_key(id) +
                                              R"(","record":{"taskType":"T","taskPara":")" + name +
                                              R"("},"reason":"failed"})");
  }
  // The record at the task's key; empty: there is none.
  std::string task(const std::string& id) {
    const auto entry = store.get(layout.task_key(id));
    return entry && *entry ? (*entry)->value : "";
  }
  bool has_letter(const std::string& name) {
    return store.get(layout.dead_prefix + name)->has_value();
  }
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

  yard.consul.put(yard.layout.dead_prefix + "far",
                  R"({"key":"app/far","record":{"taskType":"T"}})");
  CHECK(yard.client.retry("far").error().code == ErrorCode::kInvalid);
  CHECK(yard.client.purge("far"));
}

}  // namespace

}  // namespace lictor::client::test
