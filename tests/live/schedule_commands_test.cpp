// "lictor schedule" against a real Consul, without a daemon: each subcommand's text, exit code, and
// what it leaves in Consul.

#include <cstdint>
#include <future>
#include <set>

#include <doctest/doctest.h>

#include "world.h"

namespace lictor::live {
namespace {

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
    CHECK(contains(stored, R"("Flags":18446744073709551615,)"));
  }
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
  ends(at.schedule({"schedule", "run", "s"}), 1, {"ticks each second"});
}

}  // namespace
}  // namespace lictor::live
