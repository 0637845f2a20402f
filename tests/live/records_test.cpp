// The contents of records: spellings that are understood, and others.

#include <algorithm>

#include "base/kv_name.h"
#include "world.h"

namespace lictor::live {

TEST_CASE("a task without a time has its place by its creation") {
  World world;
  for (const char* id : {"c", "a", "d", "b"}) {
    world.kv.put(world.task_key(id), R"({"taskType": "Record"})");
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"c", "a", "d", "b"});
}

TEST_CASE("a claim keeps the spelling of taskTaken and every field of the producer") {
  World world;
  const auto daemon = world.daemon("a");
  const std::string number = "12345678901234567890.000000000000000000001";
  const std::string record = R"({"taskTaken":"false","taskType":"Record","mine":)" + number +
                             R"(,"taskPara":{"sleep":"60000"},"more":{"deep":[1,null,"\u00e9"]}})";
  world.kv.put(world.task_key("1"), record);
  world.begun("1");

  const std::string claimed = world.kv.get(world.task_key("1"))->value;
  INFO(claimed);
  const json value = json::parse(claimed);
  CHECK(value.at("taskTaken") == "true");
  CHECK(value.at("taskAttempt") == 1);
  CHECK(value.at("taskClaim").at("node") == daemon->node());
  CHECK(value.at("taskClaim").at("session") == world.leader_session());
  CHECK(value.at("more") == json::parse(record).at("more"));
  CHECK(contains(claimed, "\"mine\":" + number));  // no double in between
  CHECK(world.kv.get(world.task_key("1"))->modify_index == world.journal.run("1")->token);
}

TEST_CASE("a dead letter never overwrites another") {
  World world;
  const auto daemon = world.daemon("a");
  for (const char* text : {"first", "second", "third"}) {
    world.kv.put(world.task_key("x"), text);
    REQUIRE(eventually([&] { return world.all_done(); }));
  }
  CHECK(world.kv.get_json(world.dead_key("x")).value("raw", "") == "first");
  std::vector<std::string> others;
  for (const KvEntry& entry : world.kv.list(world.dead_key("x,"))) {
    CHECK(fits_path(entry.key));
    const json letter = json::parse(entry.value);
    CHECK(letter.value("key", "") == world.task_key("x"));
    others.push_back(letter.value("raw", ""));
  }
  std::sort(others.begin(), others.end());
  CHECK(others == std::vector<std::string>{"second", "third"});
}

TEST_CASE("a Consul that takes smaller transactions than by default is served all the same") {
  ConsulAgent agent{json{{"limits", {{"txn_max_req_len", 20'000}, {"kv_max_value_size", 20'000}}}}};
  World world{agent};
  for (int i = 0; i < 60; ++i) {
    world.submit(std::to_string(100 + i), i, {{"blob", std::string(2'000, 'x')}});
  }
  world.submit("large", 99, {{"blob", std::string(18'000, 'x')}});  // in base64 it fits no more
  const auto daemon = world.daemon("a", {{"concurrency", 30}}, "none");
  REQUIRE(eventually([&] { return world.waiting() == 1; }));
  CHECK(world.journal.runs().size() == 60);
  CHECK(world.dead() == 0);
  CHECK(daemon->logged("goes again in halves"));
  CHECK(world.kv.has(world.task_key("large")));
  world.kv.put_json(world.task_key("large"), json{{"taskType", "Record"}});
  REQUIRE(eventually([&] { return world.all_done(); }));
}

}  // namespace lictor::live
