// A fleet of two versions serves the same queue: records of an earlier version are read, run and
// kept. versions/*.json hold records that a daemon of that version wrote.

#include <ctime>
#include <filesystem>
#include <map>

#include "world.h"

namespace lictor::live {
namespace {

std::vector<std::string> versions() {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator{LICTOR_VERSIONS_FOLDER}) {
    files.push_back(file.path());
  }
  return files;
}

TEST_CASE("commands and a new daemon understand what a daemon of an earlier version wrote") {
  for (const std::string& file : versions()) {
    CAPTURE(file);
    const json old = json::parse(read_text(file));
    World world;
    const std::string queue = world.root + "default/";
    const std::string session = world.kv.create_session("lictor old", "0s");
    for (const auto& [key, value] : old.at("keys").items()) {
      json record = value;
      if (record.contains("taskClaim")) record["taskClaim"]["session"] = session;
      // If a retry is due later than any backoff, a leader assumes that a clock was wrong.
      if (record.contains("taskRetryAt")) record["taskRetryAt"] = std::time(nullptr) + 3000;
      world.kv.put_json(queue + key, record);
    }
    REQUIRE(world.kv.acquire(queue + "leader", session, old.at("leader").dump()));
    REQUIRE(world.kv.acquire(queue + "members/old", session, old.at("member").dump()));

    const auto lictor = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(),
                       {LICTOR_COMMAND, "--consul", world.address(), "--root", world.root});
      return run(arguments);
    };
    const auto document = [&](std::vector<std::string> arguments) {
      arguments.emplace_back("--json");
      const std::string out = lictor(arguments).out;
      return json::parse(out.substr(out.find_first_of("{[")));
    };
    std::map<std::string, std::string> states;
    const json listed = document({"list"});
    for (const json& task : listed.at("tasks")) states[task.at("id")] = task.at("state");
    CHECK(states == std::map<std::string, std::string>{
                        {"Bad", "scheduled"}, {"Dead", "dead"}, {"Long", "running"}});
    CHECK(document({"list", "--state", "done"}).at("tasks").at(0).at("took_ms") == 3);
    CHECK(document({"show", "Ok"}).at("tasks").at(0).at("result") == json{{"rows", 7}});
    CHECK(document({"show", "Dead"}).at("tasks").at(0).at("error") == "exit status 64: no");
    CHECK(document({"members"}).at("members").at(0).at("version") ==
          old.at("member").at("version"));
    CHECK(contains(lictor({"leader"}).out, "old leads, but was last seen"));
    // The new daemon waits beside the old leader, and takes over the partitions that it gives up.
    DaemonSettings settings = world.settings("new", {{"history", true}});
    LictorDaemon daemon{settings};
    REQUIRE(eventually([&] { return world.stands_by(daemon); }));
    CHECK(world.leader() == "old");
    CHECK(world.journal.order().empty());
    world.kv.put_json(queue + "leader", old.at("released"));
    REQUIRE(world.kv.release(queue + "leader", session));
    REQUIRE(eventually([&] { return world.journal.run("Long", 2) && world.leads(daemon); }));
    REQUIRE(eventually([&] { return !world.kv.has(world.task_key("Long")); }));
    CHECK(world.journal.order() == std::vector<std::string>{"Long"});
    const json done = world.kv.get_json(queue + "done/Long");
    CHECK(done.at("record").at("mine") == json{1, 2});
    CHECK(done.at("attempts") == 2);
    CHECK(done.at("lost") == 1);
    // The retry waits on; the history of the old version stays; its dead letter can be retried.
    CHECK(world.kv.get_json(world.task_key("Bad")).at("taskAttempt") == 1);
    CHECK(world.kv.has(queue + "done/Ok"));
    CHECK(lictor({"retry", "Dead"}).exit_code == 0);
    REQUIRE(eventually([&] { return world.kv.has(queue + "done/Dead"); }));
  }
}

}  // namespace
}  // namespace lictor::live
