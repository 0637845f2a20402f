// What stands in the records: spellings that are understood, and what is not.

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/kv_name.h"
#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("taskTaken and taskTime are understood in each of their spellings") {
  World world;
  const auto put = [&](const std::string& id, const std::string& time, const std::string& taken) {
    std::string record = R"({"taskType": "Record")";
    if (!time.empty()) record += R"(, "taskTime": )" + time;
    if (!taken.empty()) record += R"(, "taskTaken": )" + taken;
    world.kv.put(world.task_key(id), record + "}");
  };
  // The names say the order, which is neither that of writing nor that of the numbers as text.
  put("6", R"("1445599892000")", "\"false\"");  // milliseconds
  put("3", R"("1445599889")", "true");          // said to be taken, by nobody who lives
  put("5", "1445599891000", "false");
  put("1", "999999999", "\"false\"");
  put("4", "1445599890", "\"true\"");
  put("2", R"("1445599888")", "");
  put("7", "1445599893", "null");

  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.order() == std::vector<std::string>{"1", "2", "3", "4", "5", "6", "7"});
  CHECK(world.dead() == 0);
}

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
  REQUIRE(eventually([&] { return world.journal.run("1").has_value(); }));

  const std::string claimed = world.kv.get(world.task_key("1"))->value;
  INFO(claimed);
  const json value = json::parse(claimed);
  CHECK(value.at("taskTaken") == "true");
  CHECK(value.at("taskAttempt") == 1);
  CHECK(value.at("taskClaim").at("node") == daemon->node());
  CHECK(value.at("taskClaim").at("session") == world.leader_session());
  CHECK(value.at("more") == json::parse(record).at("more"));
  CHECK(claimed.find("\"mine\":" + number) != std::string::npos);  // no double in between
  CHECK(world.kv.get(world.task_key("1"))->modify_index == world.journal.run("1")->token);
}

TEST_CASE("fifty bad records among fifty good ones become dead letters, and the good ones run") {
  World world;
  const std::vector<std::string> bad{"",
                                     "not json",
                                     "{}",
                                     R"({"taskType": "Record", "taskTime": "soon"})",
                                     std::string{"\0\xff\xfe\x80", 4},
                                     "{\"taskType\": \"Rec\xff\"}"};
  for (std::size_t i = 0; i < 50; ++i) {
    world.kv.put(world.task_key("bad-" + std::to_string(i)), bad[i % bad.size()]);
    world.submit("good-" + std::to_string(i), static_cast<long>(1000 + i));
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));

  std::vector<std::string> good;
  for (std::size_t i = 0; i < 50; ++i) good.push_back("good-" + std::to_string(i));
  CHECK(world.journal.order() == good);
  CHECK(world.dead() == 50);
  for (std::size_t i = 0; i < 50; ++i) {
    const std::string& raw = bad[i % bad.size()];
    CAPTURE(i);
    CAPTURE(raw);
    const json letter = world.kv.get_json(world.dead_key("bad-" + std::to_string(i)));
    INFO(letter.dump());
    REQUIRE(letter.is_object());
    CHECK(letter.value("reason", "") == "unreadable");
    CHECK_FALSE(letter.value("error", "").empty());
    if (letter.contains("raw")) {
      CHECK(letter["raw"] == raw);
    } else if (i % bad.size() == 4) {
      CHECK(letter.value("raw_base64", "") == "AP/+gA==");
    } else {
      CHECK_FALSE(letter.value("raw_base64", "").empty());
    }
  }
  const json letter = world.kv.get_json(world.dead_key("bad-3"));
  CHECK(letter.value("error", "").find("taskTime") != std::string::npos);
  CHECK(letter.value("error", "").find("soon") != std::string::npos);
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

TEST_CASE("a dead letter finds its name beside hundreds, also of a key that no path can name") {
  World world;
  for (const char* id : {"x", "a//b"}) {
    static_cast<void>(world.kv.set(world.dead_key(id), "{}"));
    for (int i = 2; i <= 300; ++i) {
      static_cast<void>(world.kv.set(world.dead_key(id) + "~" + std::to_string(i), "{}"));
    }
    static_cast<void>(world.kv.set(world.task_key(id), "not a record"));
  }
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 602);
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

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
