#include <map>

#include "harness.h"
#include "model_consul.h"
#include "schedule/ticks.h"
#include "wire/schedule_record.h"

namespace lictor::cli::test {
namespace {

using nlohmann::json;

constexpr const char* kNightly =
    R"({"cron":"30 2 * * *","timezone":"Europe/Rome","task":{"taskType":"Backup"}})";
constexpr const char* kConfigured = R"({"every":"1h","task":{"taskType":"T"},"fromConfig":true})";

struct Told {
  Result<int> code;
  std::string out, err;

  [[nodiscard]] json document() const { return json::parse(out); }
  [[nodiscard]] std::string error() const { return code ? "" : code.error().message; }
};

// Runs `words` of "schedule".
Told tell(net::Transport& consul, std::vector<std::string> words, bool as_json = false,
          std::map<std::string, LocalSchedule> configured = {}) {
  Stage stage{consul, as_json};
  stage.client.schedules = std::move(configured);
  words.insert(words.begin(), "schedule");
  auto code = stage.run_words(words);
  return {std::move(code), stage.out(), stage.err()};
}

}  // namespace

TEST_CASE("add writes what the flags say, and shows the next ticks in the zone and in UTC") {
  ModelConsul consul;
  std::vector<std::string> words{
      "add",       "nightly",  "--cron",         "30 2 * * *", "--timezone",       "Asia/Kolkata",
      "--missed",  "all",      "--missed-limit", "3",          "--missed-max-age", "2h",
      "--overlap", "queue",    "--jitter",       "5m",         "--type",           "Backup",
      "--para",    "host=db7", "--para",         "n:=1.50",    "--timeout",        "1h"};
  const Told added = tell(consul, words);
  REQUIRE_MESSAGE(added.code, added.error());
  CHECK(consul.value("lictor/q/schedules/nightly") ==
        R"({"cron":"30 2 * * *","timezone":"Asia/Kolkata","missed":"all","missedLimit":3,)"
        R"("missedMaxAge":"2h","overlap":"queue","jitter":"5m","task":{"taskType":"Backup",)"
        R"("taskPara":{"host":"db7","n":1.50},"timeout":"1h"}})");
  CHECK(
      contains(added.out, "schedule \"nightly\" is written; its next ticks:\nTICK (Asia/Kolkata)"));
  CHECK(missing_in(added.out, {"T02:30:00+05:30  ", "T21:00:00Z  in "}) == "");
  CHECK(contains(added.err, "no daemon has ever led"));

  const Told again = tell(consul, words);
  CHECK(again.code.error().code == ErrorCode::kConflict);
  words.emplace_back("--replace");
  const Told replaced = tell(consul, words, true);
  REQUIRE(replaced.code);
  CHECK(replaced.document()["key"] == "lictor/q/schedules/nightly");
  CHECK(replaced.document()["ticks"].size() == 3);
  CHECK(replaced.document()["ticks"][0].contains("local"));
}

TEST_CASE("an error of add names schedule, field, expectation and finding") {
  ModelConsul consul;
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"add", "x"});
    return refusal_of(tell(consul, words).code, ErrorCode::kInvalid);
  };
  CHECK(refused({"--type", "Backup"}) ==
        "schedule \"x\": expected one of cron, every and at, got none of them");
  CHECK(refused({"--type", "Backup", "--every", "10m", "--missed", "never"}) ==
        R"(schedule "x": missed: expected "skip", "once" or "all", got "never")");
  CHECK(contains(refused({"--type", "Backup", "--every", "10m", "--timezone", "Europe/Roma"}),
                 "Europe/Rome"));
  CHECK(contains(refused({"--every", "10m"}), "--type: expected the name of a kind of task"));
  CHECK(consul.asked() == 0);
}

TEST_CASE("list shows every schedule, also beside bad ones") {
  ModelConsul consul;
  CHECK(contains(tell(consul, {"list"}).err, "no schedules in queue \"q\""));
  const auto put = [&](const std::string& name, const std::string& record) {
    consul.put("lictor/q/schedules/" + name, record);
  };
  put("bad", "nonsense");
  put("february", R"({"cron":"0 0 30 2 *","task":{"taskType":"T"}})");
  put("nightly", kNightly);
  put("made", R"({"every":"1h","lastTask":"made/20261124T083000Z","task":{"taskType":"T"}})");
  put("once", R"({"at":["2020-01-01T00:00:00Z"],"task":{"taskType":"T"}})");
  put("still", R"({"every":"10m","paused":true,"lastTick":"2026-11-24T09:30:00Z",)"
               R"("task":{"taskType":"T"}})");
  const Told told = tell(consul, {"list"});
  REQUIRE(told.code);
  CHECK(*told.code == 0);
  CHECK(missing_in(told.out, {"30 2 * * *, Europe/Rome  20", "every 10m", "2026-11-24T08:30:00Z (",
                              "bad: cron: never fires", "at 2020-01-01T00:00:00Z"}) == "");
  CHECK(contains(told.err, "without a leader no tick makes a task"));

  const json all = tell(consul, {"list"}, true).document()["schedules"];
  REQUIRE(all.size() == 6);
  std::string states;
  for (const json& one : all) states += one["state"].get<std::string>() + ' ';
  CHECK(states == "bad bad active active ended paused ");
  CHECK(all[3]["next"].is_string());
  CHECK(all[2]["last"] == "2026-11-24T08:30:00Z");
  check_members(all[5],  // its lastTick is no task
                {{"next", nullptr}, {"last", nullptr}, {"last_tick", "2026-11-24T09:30:00Z"}});
}

TEST_CASE("show has the record; for an unknown name it says which was meant") {
  ModelConsul consul;
  consul.put("lictor/q/schedules/nightly", kNightly);
  const Told told = tell(consul, {"show", "nightly"});
  CHECK(missing_in(told.out, {"state       active\n", "\"taskType\": \"Backup\""}) == "");
  const json shown = tell(consul, {"show", "nightly"}, true).document();
  CHECK(shown["schedule"]["value"]["task"]["taskType"] == "Backup");
  CHECK(shown["schedule"]["from_config"] == false);
  consul.put("lictor/q/schedules/ours", kConfigured);
  CHECK(contains(tell(consul, {"show", "ours"}).out, "the leader, as its configuration"));
  const Told none = tell(consul, {"show", "nigthly"}, true);
  CHECK(none.code.error().code == ErrorCode::kNotFound);
  CHECK(contains(none.error(), "did you mean \"nightly\"?"));
  CHECK(none.document()["schedule"].is_null());
}

TEST_CASE("pause, resume, run and remove") {
  ModelConsul consul;
  consul.put("lictor/q/schedules/nightly", kNightly);
  CHECK(contains(tell(consul, {"pause", "nightly"}).out, "is paused: it makes no tasks"));
  CHECK(contains(tell(consul, {"pause", "nightly"}).out, "is already paused"));
  CHECK(contains(tell(consul, {"next", "nightly", "-n", "1"}).err, "is paused"));
  CHECK(tell(consul, {"resume", "nightly"}, true).document()["changed"] == true);
  CHECK(tell(consul, {"resume", "nightly"}, true).document()["changed"] == false);

  const json ran = tell(consul, {"run", "nightly"}, true).document();
  const std::string id = ran["id"];
  CHECK(id.starts_with("nightly/2"));
  CHECK(contains(consul.value(ran["key"]), R"("taskType":"Backup")"));
  CHECK(contains(consul.value("lictor/q/schedules/nightly"), R"("lastTask":")" + id + '"'));
  CHECK(contains(tell(consul, {"remove", "nightly"}).out, "is removed"));
  CHECK(consul.value("lictor/q/schedules/nightly").empty());
  CHECK(tell(consul, {"remove", "nightly"}).code.error().code == ErrorCode::kNotFound);
  CHECK(tell(consul, {"run", "nightly"}).code.error().code == ErrorCode::kNotFound);
}

TEST_CASE("remove says that the leader writes a schedule of the configuration again") {
  ModelConsul consul;
  for (const bool as_json : {false, true}) {
    consul.put("lictor/q/schedules/ours", kConfigured);
    const Told removed = tell(consul, {"remove", "ours"}, as_json);
    CHECK(removed.code == 0);
    CHECK(contains(removed.err,
                   "the leader writes schedule \"ours\" again, as its configuration says; "));
    CHECK(consul.value("lictor/q/schedules/ours").empty());
  }
  consul.put("lictor/q/schedules/nightly", kNightly);
  CHECK(tell(consul, {"remove", "nightly"}).err.empty());
}

TEST_CASE("pause and resume are refused if the configuration sets the opposite") {
  ModelConsul consul;
  const std::string key = "lictor/q/schedules/ours";
  const auto paused = [](const char* record) {
    return std::string{R"({"paused":true,)"} + (record + 1);
  };
  consul.put(key, paused(kConfigured));
  const Told resumed = tell(consul, {"resume", "ours"}, false, {{"ours", {"/etc/l.json", true}}});
  CHECK(refusal_of(resumed.code, ErrorCode::kConflict) ==
        "schedule \"ours\" is not resumed: /etc/l.json sets \"paused\": true for it, and the "
        "leader would undo the change; set \"paused\": false there and run \"systemctl reload "
        "lictor\" on each host");
  CHECK(consul.value(key) == paused(kConfigured));
  // The file agrees, or leaves it to the operator.
  CHECK(tell(consul, {"resume", "ours"}, false, {{"ours", {"/etc/l.json", false}}}).err.empty());
  CHECK(contains(tell(consul, {"pause", "ours"}, false, {{"ours", {"/etc/l.json", false}}}).error(),
                 "is not paused: /etc/l.json sets \"paused\": false for it"));
  CHECK(tell(consul, {"pause", "ours"}, false, {{"ours", {"/etc/l.json", {}}}}).err.empty());
  // Another client's schedule is not the configuration's, whatever its name.
  consul.put(key, paused(kNightly));
  const Told other = tell(consul, {"resume", "ours"}, false, {{"ours", {"/etc/l.json", true}}});
  CHECK(contains(other.out, "is resumed"));
  CHECK(other.err.empty());
}

TEST_CASE("without the configuration, pause and resume warn that the leader may undo the change") {
  ModelConsul consul;
  consul.put("lictor/q/schedules/ours", kConfigured);
  const char* warning =
      "the leader's configuration has schedule \"ours\": if it sets \"paused\", the leader undoes "
      "this change within seconds; then change the configuration instead";
  CHECK(contains(tell(consul, {"pause", "ours"}).err, warning));
  CHECK(contains(tell(consul, {"resume", "ours"}, true).err, warning));
  CHECK(tell(consul, {"resume", "ours"}).err.empty());  // nothing was changed
}

TEST_CASE("next shows a rule without any schedule and without Consul") {
  FakeConsul consul{{}};
  const json told = tell(consul, {"next", "--cron", "0 0 L 2 *", "-n", "4"}, true).document();
  REQUIRE(told["ticks"].size() == 4);
  CHECK(contains(told["ticks"].dump(), "-02-29T00:00:00Z"));
  CHECK(told["name"].is_null());
  CHECK(contains(tell(consul, {"next", "--cron", "0 0 30 2 *"}).error(), "cron: never fires"));
  CHECK(tell(consul, {"next", "--cron", "0 24 * * *"}).code.error().code == ErrorCode::kInvalid);
}

TEST_CASE("next --from shows the ticks after a time, also those that were made") {
  ModelConsul consul;
  consul.put("lictor/q/schedules/s",
             R"({"cron":"30 2 * * *","timezone":"Europe/Rome","lastTick":"2026-11-24T01:30:00Z",)"
             R"("end":"2026-12-01T00:00:00Z","task":{"taskType":"T"}})");
  const auto next = [](const std::string& from, bool stored = true) {
    std::vector<std::string> words{"next", "--from", from, "-n", "2"};
    if (stored) {
      words.emplace_back("s");
    } else {
      words.insert(words.end(), {"--cron", "0 0 1 * *"});
    }
    return words;
  };
  const auto ticks = [&](const std::vector<std::string>& words) {
    std::string all;
    const json told = tell(consul, words, true).document();
    for (const json& tick : told["ticks"]) all += tick["tick"].get<std::string>() + ' ';
    return all;
  };
  CHECK(ticks(next("2026-03-28T12:00:00+01:00")) == "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z ");
  // After it: a tick at the time itself is not shown.
  CHECK(ticks(next("2026-11-24T01:30:00Z")) == "2026-11-25T01:30:00Z 2026-11-26T01:30:00Z ");
  CHECK(ticks(next("1796002199.5")) == "2026-11-30T01:30:00Z ");
  CHECK(contains(tell(consul, next("1796002200")).err, "it has no ticks after 1796002200"));
  CHECK(ticks(next("2026-01-01T00:00:00Z", false)) == "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z ");
  CHECK(missing_in(refusal_of(tell(consul, next("tomorrow")).code, ErrorCode::kInvalid),
                   {"--from: expected a time with a zone", "got \"tomorrow\""}) == "");
}

TEST_CASE("why says what a schedule knows of a tick without a task") {
  ModelConsul consul;
  const auto reason = [&](const std::string& record, const std::string& id) {
    consul.put("lictor/q/schedules/s", record);
    Stage stage{consul};
    const auto code = stage.run("why " + id);
    return code ? stage.out() : code.error().message;
  };
  const auto with = [](const std::string& more) {
    return R"({"cron":"0 0 * * *",)" + more + R"("task":{"taskType":"T"}})";
  };
  CHECK(contains(reason(with(""), "s/29990101T000000Z"), "its tick comes at 2999"));
  CHECK(contains(reason(with(R"("paused":true,)"), "s/29990101T000000Z"), "is paused"));
  CHECK(contains(reason(with(""), "s/20200101T000000Z"), "no leader has decided about it"));
  CHECK(contains(reason(with(""), "s/29990101T000001Z"), "has no such tick"));
  const std::string last = R"("lastTick":"2026-11-24T00:00:00Z",)";
  CHECK(contains(reason(with(last), "s/20261123T000000Z"), "the tick was skipped"));
  CHECK(contains(reason(with(R"("lastTask":"s/20261124T000000Z",)" + last), "s/20261124T000000Z"),
                 "its task was made and is gone"));
  CHECK(contains(reason("nonsense", "s/20261124T000000Z"), "makes no tasks: "));
  // No tick, no schedule: as for any id.
  CHECK(contains(reason(with(""), "s@now"), "no task s@now in queue"));
  CHECK(contains(reason(with(""), "t/20261124T000000Z"), "no task t/2026"));
}

}  // namespace lictor::cli::test
