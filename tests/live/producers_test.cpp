// Who writes tasks, and how: any HTTP client is a producer.

#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "world.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

TEST_CASE("the task of the manual, written with curl, is run with its parameters and deleted") {
  World world{shared_consul(), "lictor/"};
  const std::string script =
      R"(cat > "$1/input"; env | grep ^LICTOR_ > "$1/environment.new"; mv "$1/environment.new" "$1/environment")";
  const json executors{
      {"CreateTableSpace", {{"exec", {"/bin/sh", "-c", script, "job", world.folder.path()}}}}};
  const auto daemon = world.daemon("a", {{"executors", executors}});
  REQUIRE(eventually([&] { return world.leads(*daemon); }));

  // Word for word, but for the port.
  const std::string command =
      R"(curl -X PUT http://127.0.0.1:8500/v1/kv/lictor/default/tasks/42 -d '{
  "taskId": "42", "taskTime": "1445599887", "taskTaken": "false",
  "taskType": "CreateTableSpace",
  "taskPara": {"instanceId": "db7", "initSize": "8000", "maxSize": "100000", "stepSize": "2000"}}')";
  std::string here = command;
  here.replace(here.find("8500"), 4, std::to_string(world.port()));
  const Output output = run({"/bin/sh", "-c", here + " --silent --noproxy '*'"});
  INFO(output.out);
  REQUIRE(output.exit_code == 0);
  CHECK(output.out == "true");

  REQUIRE(eventually([&] { return !read_text(world.folder.file("environment")).empty(); }));
  REQUIRE(eventually([&] { return !world.kv.has("lictor/default/tasks/42"); }));
  CHECK(world.dead() == 0);

  const json input = json::parse(read_text(world.folder.file("input")));
  CHECK(input.at("taskId") == "42");
  CHECK(input.at("taskTime") == "1445599887");
  CHECK(input.at("taskPara") == json{{"instanceId", "db7"},
                                     {"initSize", "8000"},
                                     {"maxSize", "100000"},
                                     {"stepSize", "2000"}});
  const std::string environment = read_text(world.folder.file("environment"));
  INFO(environment);
  for (const char* variable :
       {"LICTOR_TASK_ID=42\n", "LICTOR_TASK_KEY=lictor/default/tasks/42\n",
        "LICTOR_TASK_TYPE=CreateTableSpace\n", "LICTOR_QUEUE=default\n", "LICTOR_ATTEMPT=1\n",
        "LICTOR_PARA_instanceId=db7\n", "LICTOR_PARA_initSize=8000\n",
        "LICTOR_PARA_maxSize=100000\n", "LICTOR_PARA_stepSize=2000\n"}) {
    CHECK(environment.find(variable) != std::string::npos);
  }
  CHECK(environment.find("LICTOR_FENCING_TOKEN=") != std::string::npos);
}

TEST_CASE("the consul command and programs in other languages are producers") {
  World world;
  const auto daemon = world.daemon("a");
  REQUIRE(eventually([&] { return world.leads(*daemon); }));

  const std::string record = R"({"taskType": "Record", "taskPara": {"version": "1"}})";
  const Output consul = run({consul_binary(), "kv", "put", "-http-addr=" + world.address(),
                             world.task_key("from-consul"), record});
  INFO(consul.out);
  REQUIRE(consul.exit_code == 0);

  std::vector<std::string> expected{"from-consul"};
  const std::string program = R"(
import json, sys, urllib.request
url, record = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
request = urllib.request.Request(url, data=json.dumps(json.loads(record)).encode(), method="PUT")
assert opener.open(request).read().strip() == b"true"
)";
  if (run({"python3", "--version"}).exit_code == 0) {
    const Output python =
        run({"python3", "-c", program, world.address() + "/v1/kv/" + world.task_key("from-python"),
             record});
    INFO(python.out);
    REQUIRE(python.exit_code == 0);
    expected.emplace_back("from-python");
  } else {
    MESSAGE("python3 is not here; its part is left out");
  }
  for (const std::string& id : expected) {
    CAPTURE(id);
    REQUIRE(eventually([&] { return world.journal.run(id).has_value(); }));
    REQUIRE(eventually([&] { return !world.kv.has(world.task_key(id)); }));
    CHECK(world.journal.runs_of(id).size() == 1);
    CHECK(world.journal.run(id)->version == "1");
  }
}

TEST_CASE("a task's key may hold whatever a key of Consul may hold") {
  World world;
  const auto daemon = world.daemon("a");
  const std::map<std::string, std::string> ids{
      {"with space", "with%20space"},
      {"100%", "100%25"},
      {"%41", "%2541"},  // not to be decoded into "A"
      {"a+b?c#d&e=f;g", "a+b?c#d&e=f;g"},
      {"quote\"back\\slash*", "quote\"back\\slash*"},
      {"folder/in folder/task", "folder%2Fin%20folder%2Ftask"},
      {"f\xc3\xbcr-\xe6\x97\xa5\xe6\x9c\xac", "f%C3%BCr-%E6%97%A5%E6%9C%AC"}};
  for (const auto& [id, encoded] : ids) {
    world.kv.put_json(world.task_key(id), json{{"taskType", "Record"}});
  }
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.dead() == 0);
  for (const auto& [id, encoded] : ids) {
    CAPTURE(id);
    CHECK(world.journal.runs_of(encoded).size() == 1);
  }
  CHECK(world.journal.runs().size() == ids.size());
}

TEST_CASE("the largest record that a transaction holds is run, a larger one blocks nothing") {
  World world;
  const auto daemon = world.daemon("a");
  const auto record_of = [](std::size_t bytes) {
    const std::string frame = json{{"taskType", "Record"}, {"taskPara", {{"blob", ""}}}}.dump();
    const std::string blob(bytes - frame.size(), 'x');
    return json{{"taskType", "Record"}, {"taskPara", {{"blob", blob}}}}.dump();
  };
  const std::string too_large = record_of(400'000);
  world.kv.put(world.task_key("too-large"), too_large);
  world.kv.put(world.task_key("large"), record_of(385'000));
  world.kv.put(world.task_key("failing"),
               R"({"taskType": "Record", "taskPara": {"exit": 65, "blob": ")" +
                   std::string(385'000, 'y') + "\"}}");
  world.kv.put(world.task_key("small"), record_of(100));

  REQUIRE(eventually([&] { return world.waiting() == 1; }));
  CHECK(world.journal.runs_of("large").size() == 1);
  CHECK(world.journal.run("large")->ended);
  CHECK(world.journal.run("large")->input_bytes >= 385'000);
  CHECK(world.journal.runs_of("small").size() == 1);
  CHECK(world.journal.runs_of("failing").size() == 1);
  CHECK(world.journal.runs_of("too-large").empty());
  CHECK(world.kv.get(world.task_key("too-large"))->value == too_large);
  CHECK(world.dead() == 1);
  CHECK(world.kv.get_json(world.dead_key("failing")).value("reason", "") == "permanent");

  // Made smaller, it is run.
  world.kv.put(world.task_key("too-large"), record_of(100));
  REQUIRE(eventually([&] { return world.all_done(); }));
  CHECK(world.journal.runs_of("too-large").size() == 1);
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
