// "lictor schedule" against a real Consul, without a daemon: each subcommand's text, exit code, and
// what it leaves in Consul.

#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "process.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

struct Scene {
  Scene() { write_text(config, "{}"); }

  World world;
  const std::string config = world.folder.file("client.json");

  // Any thread may call it.
  [[nodiscard]] Output schedule(std::vector<std::string> arguments) const {
    std::vector<std::string> line{LICTOR_COMMAND, "--config", config,         "--root",
                                  world.root,     "--consul", world.address()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return run(line);
  }
  [[nodiscard]] std::string key(const std::string& name) const {
    return world.root + "default/schedules/" + name;
  }
};

// `output` ended with `code` and says `text`.
void check_that(const Output& output, int code, const std::string& text) {
  CAPTURE(output.out);
  CHECK(output.exit_code == code);
  CHECK(output.out.find(text) != std::string::npos);
}

TEST_CASE("a schedule is added, listed, shown, paused, resumed, run and removed") {
  Scene at;
  check_that(at.schedule({"schedule", "add", "db/nightly", "--cron", "30 2 * * *", "--timezone",
                          "Europe/Rome", "--type", "Backup", "--para", "at={tick}"}),
             0, "TICK (Europe/Rome)");
  const std::string written = at.world.kv.get(at.key("db/nightly")).value().value;
  CHECK(json::parse(written) ==
        json{{"cron", "30 2 * * *"},
             {"timezone", "Europe/Rome"},
             {"task", {{"taskType", "Backup"}, {"taskPara", {{"at", "{tick}"}}}}}});
  check_that(at.schedule({"schedule", "add", "db/nightly", "--every", "1h", "--type", "Backup"}), 1,
             "exists already and was left as it is");
  CHECK(at.world.kv.get(at.key("db/nightly")).value().value == written);
  check_that(at.schedule({"schedule", "list"}), 0, "30 2 * * *, Europe/Rome");
  check_that(at.schedule({"schedule", "show", "db/nightly"}), 0, "state       active");
  check_that(at.schedule({"schedule", "show", "db/nigthly"}), 3, "did you mean \"db/nightly\"?");
  check_that(at.schedule({"schedule", "next", "db/nightly", "-n", "2"}), 0, "T02:30:00+0");

  check_that(at.schedule({"schedule", "pause", "db/nightly"}), 0, "is paused");
  CHECK(at.world.kv.get_json(at.key("db/nightly"))["paused"] == true);
  check_that(at.schedule({"schedule", "list"}), 0, "paused");
  check_that(at.schedule({"schedule", "resume", "db/nightly"}), 0, "is resumed");
  CHECK(at.world.kv.get_json(at.key("db/nightly"))["paused"] == false);

  const Output ran = at.schedule({"schedule", "run", "db/nightly", "--json"});
  CHECK(ran.exit_code == 0);
  const std::string id = json::parse(ran.out)["id"];
  CHECK(at.world.kv.get_json(at.key("db/nightly"))["lastTask"] == id);
  const json task = at.world.kv.get_json(at.world.task_key(id));
  auto tick = task["taskPara"]["at"].get<std::string>();
  std::erase_if(tick, [](char c) { return c == '-' || c == ':'; });
  CHECK("db/nightly/" + tick == id);
  CHECK(task["executeAt"] == task["taskPara"]["at"]);

  check_that(at.schedule({"schedule", "remove", "db/nightly"}), 0, "is removed");
  CHECK_FALSE(at.world.kv.has(at.key("db/nightly")));
  check_that(at.schedule({"schedule", "remove", "db/nightly"}), 3, "no schedule");
  check_that(at.schedule({"why", "db/nightly/20261124T013000Z"}), 3, "no task");
}

TEST_CASE("what rewrites a schedule keeps the flags of its key") {
  Scene at;
  REQUIRE(at.world.kv
              .request("PUT", "/v1/kv/" + at.key("s") + "?flags=18446744073709551615",
                       R"({"every": "1h", "task": {"taskType": "T"}})")
              .body == "true");
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"pause", "s"},
        {"resume", "s"},
        {"run", "s"},
        {"add", "s", "--every", "1h", "--type", "T", "--replace"}}) {
    CAPTURE(change.front());
    const std::uint64_t before = at.world.kv.get(at.key("s")).value().modify_index;
    std::vector<std::string> line{"schedule"};
    line.insert(line.end(), change.begin(), change.end());
    CHECK(at.schedule(line).exit_code == 0);
    CHECK(at.world.kv.get(at.key("s")).value().modify_index > before);
    const std::string stored = at.world.kv.request("GET", "/v1/kv/" + at.key("s")).body;
    CHECK(stored.find(R"("Flags":18446744073709551615,)") != std::string::npos);
  }
}

TEST_CASE("a configured schedule stays paused, and a removed one comes back: the commands say so") {
  Scene at;
  write_text(at.config, R"({"queues": [{"executors": {"T": {"noop": {}}}, "schedules": {"s":)"
                        R"( {"every": "1h", "paused": true, "task": {"taskType": "T"}}}}]})");
  const std::string record =
      R"({"every":"1h","paused":true,"task":{"taskType":"T"},"fromConfig":true})";
  at.world.kv.put(at.key("s"), record);
  check_that(at.schedule({"schedule", "resume", "s"}), 1,
             at.config + " sets \"paused\": true for it");
  CHECK(at.world.kv.get(at.key("s")).value().value == record);
  write_text(at.config, "{}");
  check_that(at.schedule({"schedule", "resume", "s"}), 0, "the leader undoes this change");
  check_that(at.schedule({"schedule", "remove", "s"}), 0, "the leader writes schedule \"s\" again");
}

TEST_CASE("each run makes a task with an id of its own, also many at once") {
  Scene at;
  at.world.kv.put(at.key("s"), R"({"every": "2s", "mine": 1.50, "task": {"taskType": "T"}})");
  constexpr std::size_t kRuns = 6;
  std::vector<std::future<Output>> runs;
  for (std::size_t i = 0; i < kRuns; ++i) {
    runs.push_back(std::async(std::launch::async, [&] {
      return at.schedule({"schedule", "run", "s"});
    }));
  }
  std::set<std::string> ids;
  const auto take = [&](const Output& ran) {
    CAPTURE(ran.out);
    REQUIRE(ran.exit_code == 0);
    const std::string id = ran.out.substr(0, ran.out.find('\n'));
    CHECK(at.world.kv.has(at.world.task_key(id)));
    CHECK(std::string{"13579"}.find(id.at(id.size() - 2)) != std::string::npos);
    return ids.insert(id).second;
  };
  for (auto& ran : runs) CHECK(take(ran.get()));
  // The last of them is done and gone.
  at.world.kv.remove(at.world.task_key(*ids.rbegin()));
  CHECK(take(at.schedule({"schedule", "run", "s"})));
  const std::string record = at.world.kv.get(at.key("s")).value().value;
  CHECK(record.starts_with(R"({"every": "2s", "mine": 1.50, "task": {"taskType": "T"})"));
  CHECK(json::parse(record)["lastTask"] == *ids.rbegin());

  at.world.kv.put(at.key("s"), R"({"every": "1s", "task": {"taskType": "T"}})");
  check_that(at.schedule({"schedule", "run", "s"}), 1, "ticks each second");
}

TEST_CASE("records that other clients wrote are taken as they are, good or bad") {
  Scene at;
  const std::string record =
      R"({"every": "10m", "mine": 1.50, "lastTick": "2026-11-24T09:30:00Z",)"
      R"( "lastTask": "sync/20261124T093000Z", "task": {"taskType": "Sync"}})";
  at.world.kv.put(at.key("sync"), record);
  at.world.kv.put(at.key("february"), R"({"cron": "0 0 30 2 *", "task": {"taskType": "T"}})");
  at.world.kv.put(at.key("bytes"), "\x80\xff");
  check_that(at.schedule({"schedule", "list"}), 0, "bad: cron: never fires");
  check_that(at.schedule({"schedule", "list"}), 0, "2026-11-24T09:30:00Z (");
  check_that(at.schedule({"check"}), 1, "\"february\": it makes no tasks: cron: never fires");
  check_that(at.schedule({"schedule", "pause", "february"}), 2, "cannot be read");

  // The same rule goes on from its lastTick.
  const std::string file = at.world.folder.file("sync.json");
  write_text(file, R"({"every": "10m", "task": {"taskType": "Other"}})");
  check_that(at.schedule({"schedule", "add", "sync", "--replace", "--file", file}), 0,
             "is written");
  CHECK(at.world.kv.get_json(at.key("sync"))["lastTick"] == "2026-11-24T09:30:00Z");
  write_text(file, R"({"every": "20m", "task": {"taskType": "Other"}})");
  check_that(at.schedule({"schedule", "add", "sync", "--replace", "-f", file}), 0, "is written");
  CHECK_FALSE(at.world.kv.get_json(at.key("sync")).contains("lastTick"));
  check_that(at.schedule({"schedule", "add", "a@b", "-f", file}), 2, "its name has \"@\"");
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
