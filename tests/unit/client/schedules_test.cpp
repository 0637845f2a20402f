#include "client/schedules.h"

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "fake_consul.h"
#include "unit/json_members.h"
#include "unit/refusal.h"
#include "wire/schedule_record.h"

namespace lictor::client {
namespace {

using test::entry;
using test::FakeConsul;
using test::reply;

constexpr const char* kKey = "lictor/q/schedules/nightly";
constexpr const char* kRecord =
    R"({"cron":"30 2 * * *","mine":1.50,"task":{"taskType":"Backup","taskPara":{"at":"{tick}"}}})";
constexpr const char* kApplied =
    R"({"Results":[{"KV":{"Key":"k","ModifyIndex":9}}],"Errors":null})";

WallTime at(const char* text) { return parse_rfc3339(text).value(); }

// Makes `call` with the schedules of a Consul that gives these answers; returns its requests, too.
template <class Call>
auto with(std::deque<http::Response> replies, const Call& call) {
  FakeConsul consul{std::move(replies)};
  Store store{consul};
  Schedules schedules{store, wire::Layout::under("lictor/", "q")};
  auto result = call(schedules);
  CHECK(consul.all_asked());
  return std::pair{std::move(result), std::move(consul.asked)};
}

auto run_at(const char* time) {
  return [time](Schedules& schedules) { return schedules.run("nightly", at(time)); };
}

// The replaced record, from the body of the last request.
std::string replaced(const std::string& old, const std::string& record) {
  const auto [result, asked] =
      with({reply(200, entry(kKey, old)), reply(200, "true")},
           [&](Schedules& schedules) { return schedules.replace("nightly", record); });
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  CHECK(contains(asked.back().target, "?cas=7&flags=5"));
  return asked.back().body;
}

}  // namespace

TEST_CASE("a schedule's name is a part of its tasks' ids") {
  const auto fault = [](const std::string& name) {
    FakeConsul consul{{reply(200, "true")}};
    Store store{consul};
    const auto added = Schedules{store, wire::Layout::under("lictor/", "q")}.add(name, kRecord);
    return added ? "" : added.error().message;
  };
  for (const char* fine : {"nightly", "db/nightly", "a b", "n\u00e4chtlich", "report~2"}) {
    CHECK(fault(fine) == "");
  }
  CHECK(contains(fault("a@b"), "its name has \"@\""));
  CHECK(fault("") == "its name is empty");
  CHECK(fault("a/") != "");
  CHECK(fault("a//b") == "its name has \"//\"");
  CHECK(fault("../b") != "");
  CHECK(fault(std::string(495, 'x')) == "");
  CHECK(fault(std::string(496, 'x')) == "its name with a tick after it is longer than 512 bytes");
}

TEST_CASE("add writes the record as it is, unless there is one") {
  const auto add = [](Schedules& schedules) { return schedules.add("nightly", kRecord); };
  const auto [added, asked] = with({reply(200, "true")}, add);
  REQUIRE(added);
  CHECK(asked.front().target == "/v1/kv/lictor/q/schedules/nightly?cas=0");
  CHECK(asked.front().body == kRecord);
  const auto refused = with({reply(200, "false"), reply(200, entry(kKey, "{}"))}, [&](auto& s) {
    auto result = add(s);
    static_cast<void>(s.get("nightly"));
    return result;
  });
  CHECK(refused.first.error().code == ErrorCode::kConflict);
}

TEST_CASE("a record that no leader could use is not written") {
  const auto error_of = [](const std::string& name, const std::string& record,
                           ErrorCode code = ErrorCode::kInvalid) {
    const auto add = [&](Schedules& schedules) { return schedules.add(name, record); };
    return refusal_of(with({}, add).first, code);
  };
  CHECK(contains(error_of("nightly", R"({"cron":"0 0 30 2 *","task":{"taskType":"T"}})"),
                 "never fires"));
  CHECK(contains(error_of("nightly", R"({"task":{"taskType":"T"}})"),
                 "expected one of cron, every and at, got none of them"));
  CHECK(contains(error_of("a@b", kRecord), "its name has \"@\""));
  const auto large = [&](std::size_t bytes) {
    const std::string start = R"({"every":"1h","task":{"taskType":"T","taskPara":")";
    return error_of("nightly", start + std::string(bytes, 'x') + "\"}}", ErrorCode::kTooLarge);
  };
  CHECK_FALSE(large(400'000).empty());
  // The task fits into a transaction, and the schedule beside it does not.
  CHECK(contains(large(250'000), "the schedule and its task in one transaction"));
}

TEST_CASE("a jitter as long as the time between two ticks is refused, but read if it is stored") {
  const auto record = [](const std::string& members) {
    return "{" + members + R"(,"task":{"taskType":"T"}})";
  };
  const auto fault = [&](const std::string& members) -> std::string {
    const auto configured =
        configured_schedule(wire::Layout::under("lictor/", "q"), "nightly", record(members));
    std::deque<http::Response> replies;  // a fault is found before Consul is asked
    if (configured) replies.push_back(reply(200, "true"));
    const auto [result, asked] = with(std::move(replies), [&](Schedules& schedules) {
      return schedules.add("nightly", record(members));
    });
    CHECK(result.has_value() == configured.has_value());
    return result ? "" : result.error().message;
  };
  CHECK(contains(fault(R"("every":"2s","jitter":"12s")"),
                 R"(less than the shortest time between two ticks (2s), got "12s")"));
  CHECK(contains(fault(R"("every":"1h","jitter":"1h")"), "(1h)"));
  CHECK(fault(R"("every":"1h","jitter":"59m")").empty());
  CHECK(contains(fault(R"("cron":"0 9,10 * * *","jitter":"2h")"), "(1h)"));
  CHECK(contains(fault(R"("at":[100,160,1000],"jitter":"2m")"), "(1m)"));
  CHECK(fault(R"("at":[100],"jitter":"2m")").empty());
  for (const char* overlap : {"queue", "allow"}) {
    CHECK(fault(R"("every":"2s","jitter":"12s","overlap":")" + std::string{overlap} + '"').empty());
  }
  const auto [stored, asked] =
      with({reply(200, entry(kKey, record(R"("every":"2s","jitter":"12s")")))},
           [](Schedules& schedules) { return schedules.get("nightly"); });
  REQUIRE(stored);
  CHECK(stored->definition);
  CHECK(contains(stored->no_effect, "jitter: expected less than"));
}

TEST_CASE("a new record under the same rule keeps what was done") {
  const std::string past =
      R"({"cron":"30 2 * * *","lastTick":"2026-11-24T02:30:00Z","lastTask":"nightly@x",)"
      R"("paused":true,"task":{"taskType":"Old"}})";
  const std::string same = replaced(past, kRecord);
  CHECK(missing_in(same, {R"("lastTick":"2026-11-24T02:30:00Z")", R"("lastTask":"nightly@x")",
                          R"("paused":true)", R"("mine":1.50)", "Backup"}) == "");
  const std::string resumed =
      replaced(past, R"({"cron":"30 2 * * *","paused":false,"task":{"taskType":"T"}})");
  CHECK(contains(resumed, R"("paused":false)"));
  const std::string other = R"({"cron":"30 3 * * *","task":{"taskType":"T"}})";
  CHECK(replaced(past, other) == other);
  CHECK(replaced("nonsense", kRecord) == kRecord);
}

TEST_CASE("pause and resume try again if the leader wrote meanwhile, and write nothing twice") {
  const auto pause = [](Schedules& schedules) { return schedules.set_paused("nightly", true); };
  const auto [paused, asked] = with({reply(200, entry(kKey, kRecord)), reply(200, "false"),
                                     reply(200, entry(kKey, kRecord, 8)), reply(200, "true")},
                                    pause);
  CHECK(paused.value());
  CHECK(contains(asked.back().target, "?cas=8&flags=5"));
  CHECK(missing_in(asked.back().body, {R"("mine":1.50)", R"("paused":true)"}) == "");
  CHECK_FALSE(with({reply(200, entry(kKey, asked.back().body))}, pause).first.value());
  const auto bad = with({reply(200, entry(kKey, "{}"))}, pause).first;
  CHECK(contains(refusal_of(bad, ErrorCode::kInvalid), "add --replace"));
}

TEST_CASE("run writes task and lastTask together, and leaves lastTick") {
  const auto run = run_at("2026-11-24T09:30:00.700Z");
  const std::string jittered = std::string{R"({"jitter":"1h",)"} + (kRecord + 1);
  const auto [id, asked] = with({reply(200, entry(kKey, jittered)), reply(200, kApplied)}, run);
  CHECK(id.value() == "nightly/20261124T093000Z");
  const auto ops = nlohmann::json::parse(asked.back().body);
  REQUIRE(ops.size() == 2);
  check_members(ops[0]["KV"],
                {{"Key", "lictor/q/tasks/nightly/20261124T093000Z"}, {"Verb", "cas"}});
  const auto task = nlohmann::json::parse(*base64_decode(ops[0]["KV"]["Value"].get<std::string>()));
  CHECK(task["executeAt"] == "2026-11-24T09:30:00Z");
  CHECK(task["taskPara"]["at"] == "2026-11-24T09:30:00Z");
  check_members(ops[1]["KV"], {{"Key", kKey}, {"Index", 7}});
  const std::string record = *base64_decode(ops[1]["KV"]["Value"].get<std::string>());
  CHECK(contains(record, R"("lastTask":"nightly/20261124T093000Z")"));
  CHECK_FALSE(contains(record, "lastTick"));
}

// The id that `run` gives at 09:30:00.700 to a schedule with these members, and the task.
std::pair<std::string, nlohmann::json> run_with(const std::string& members) {
  const std::string record = '{' + members + R"(,"task":{"taskType":"T"}})";
  const auto [id, asked] = with({reply(200, entry(kKey, record)), reply(200, kApplied)},
                                run_at("2026-11-24T09:30:00.700Z"));
  REQUIRE_MESSAGE(id, (id ? "" : id.error().message));
  const auto ops = nlohmann::json::parse(asked.back().body);
  CHECK(ops[0]["KV"]["Key"] == "lictor/q/tasks/" + *id);
  return {*id, nlohmann::json::parse(*base64_decode(ops[0]["KV"]["Value"].get<std::string>()))};
}

TEST_CASE("run names its task after a second that no other task of the schedule has") {
  const auto second = [](const std::string& members) {
    return schedule::tick_text(schedule::parse_tick_id(run_with(members).first).value().tick);
  };
  CHECK(second(R"("every":"1h")") == "2026-11-24T09:30:00Z");
  // The task of another run, or of the last tick, may be done and gone.
  CHECK(second(R"("every":"1h","lastTask":"nightly/20261124T093000Z")") == "2026-11-24T09:30:01Z");
  CHECK(second(R"("every":"1h","lastTick":"2026-11-24T09:30:02Z")") == "2026-11-24T09:30:03Z");
  CHECK(second(R"("every":"1h","lastTick":"2026-11-24T09:00:00Z",)"
               R"("lastTask":"nightly/20261124T093004Z")") == "2026-11-24T09:30:05Z");
  CHECK(second(R"("every":"1h","lastTask":"somebody's","lastTick":"2026-11-24T09:00:00Z")") ==
        "2026-11-24T09:30:00Z");
  // Seconds of ticks are the leader's, also while the schedule is paused: "missed" may make them.
  CHECK(second(R"("every":"30m")") == "2026-11-24T09:30:01Z");
  CHECK(second(R"("every":"30m","paused":true)") == "2026-11-24T09:30:01Z");
  CHECK(second(R"("cron":"0-30,32-59 * * * * *")") == "2026-11-24T09:30:31Z");
  CHECK(second(R"("cron":"1-59 * * * * *","lastTick":"2026-11-24T09:30:00Z")") ==
        "2026-11-24T09:31:00Z");
  // The task is due now all the same.
  const auto [id, task] = run_with(R"("every":"30m")");
  CHECK(task["executeAt"] == "2026-11-24T09:30:00Z");
}

TEST_CASE("a schedule that ticks each second has no second left for run") {
  for (const char* rule : {R"("every":"1s")", R"("cron":"* * * * * *")"}) {
    const std::string record = std::string{"{"} + rule + R"(,"task":{"taskType":"T"}})";
    const auto refused =
        with({reply(200, entry(kKey, record))}, run_at("2026-11-24T09:30:00Z")).first;
    CHECK(missing_in(refusal_of(refused, ErrorCode::kConflict),
                     {"schedule \"nightly\" ticks each second", "\"lictor submit\""}) == "");
  }
}

TEST_CASE("of two runs at once the second takes another second") {
  const auto run = run_at("2026-11-24T09:30:00.700Z");
  const auto stale = [](std::size_t op) {
    return test::failed("failed to set key, index is stale", op);
  };
  const std::string after = wire::with_last_task(kRecord, "nightly/20261124T093000Z");
  // The first one's task is done and gone, or still exists.
  for (const std::size_t op : {std::size_t{1}, std::size_t{0}}) {
    const auto [id, asked] = with({reply(200, entry(kKey, kRecord)), stale(op),
                                   reply(200, entry(kKey, after, 8)), reply(200, kApplied)},
                                  run);
    CHECK(id.value() == "nightly/20261124T093001Z");
    CHECK(nlohmann::json::parse(asked.back().body)[1]["KV"]["Index"] == 8);
  }
  // A task that the record does not mention.
  const auto other = with({reply(200, entry(kKey, kRecord)), stale(0),
                           reply(200, entry(kKey, kRecord)), reply(200, kApplied)},
                          run)
                         .first;
  CHECK(other.value() == "nightly/20261124T093001Z");
}

TEST_CASE("a lost reply to run is reported as such") {
  const auto id = with({reply(200, entry(kKey, kRecord)), test::undelivered(http::Delivery::kLost)},
                       run_at("2026-11-24T09:30:00Z"))
                      .first;
  CHECK(contains(refusal_of(id, ErrorCode::kTimeout), "lictor show nightly/20261124T093000Z"));
}

TEST_CASE("no tick comes before the lastTick, and after the last one a schedule has ended") {
  FakeConsul consul{{}};
  Store store{consul};
  Schedules schedules{store, wire::Layout::under("lictor/", "q")};
  const auto view = [&](const std::string& record) { return schedules.view({kKey, record, {}}); };
  const WallTime now = at("2026-11-24T09:30:00Z");
  const auto ahead =
      view(R"({"cron":"0 0 * * *","lastTick":"2026-12-01T12:00:00Z","task":{"taskType":"T"}})");
  CHECK(ticks_after(*ahead.definition, now, 1).front() == at("2026-12-02T00:00:00Z"));
  CHECK(state_of(ahead, now) == ScheduleState::kActive);
  const auto once = view(R"({"at":["2026-11-24T09:30:00Z"],"task":{"taskType":"T"}})");
  CHECK(state_of(once, now) == ScheduleState::kEnded);
  CHECK(state_of(once, now - std::chrono::seconds{1}) == ScheduleState::kActive);
  CHECK(view(kRecord).no_effect.empty());
  CHECK(view(R"({"every":"1h","timeZone":"x","task":{"taskType":"T"}})").no_effect ==
        R"("timeZone" is no field of a schedule and has no effect; did you mean "timezone"?)");
  CHECK(state_of(view("nonsense"), now) == ScheduleState::kBad);
  CHECK(schedules.view({"lictor/q/schedules/a@b", kRecord, {}}).definition.error().message ==
        "its name has \"@\", which newer versions of Consul refuse, as in its tasks' ids");
}

}  // namespace lictor::client
