// Any HTTP client is a producer: who writes tasks, and how.

#include "world.h"

namespace lictor::live {

TEST_CASE("the task of the manual, written with curl, is run with its parameters and deleted") {
  World world{shared_consul(), "lictor/"};
  const std::string script =
      R"(cat > "$1/input"; env | grep ^LICTOR_ > "$1/environment.new"; mv "$1/environment.new" "$1/environment")";
  const json executors{
      {"CreateTableSpace", {{"exec", {"/bin/sh", "-c", script, "job", world.folder.path()}}}}};
  const auto daemon = world.leading_daemon("a", {{"executors", executors}});
  // Word for word, except for the port.
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
    CHECK(contains(environment, variable));
  }
  CHECK(contains(environment, "LICTOR_FENCING_TOKEN="));
}

}  // namespace lictor::live
