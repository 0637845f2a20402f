#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../exec/support.h"
#include "admin/routes.h"
#include "exec/output_log.h"
#include "fake_backend.h"
#include "fake_exchange.h"

namespace lictor::admin {
namespace {

using nlohmann::json;

// A folder of logs, and the route that reads it.
struct Logs {
  Logs() { add_log_routes(router, backend, store); }

  FakeBackend backend;

  std::string write(const std::string& id, std::uint32_t attempt, std::uint64_t token,
                    const std::string& bytes) {
    const std::string path = path_of(id, attempt, token);
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
    exec::test::write_file(path, bytes);
    return path;
  }
  [[nodiscard]] std::string path_of(const std::string& id, std::uint32_t attempt,
                                    std::uint64_t token) const {
    return exec::output_log_path(store.directory, "q", id, attempt, token);
  }
  [[nodiscard]] Response get(const std::multimap<std::string, std::string>& query,
                             std::function<void(int)> on_later = {}) const {
    Request request = make_request("GET", "/v1/logs?queue=q");
    for (const auto& [name, value] : query) request.url.query[name].push_back(value);
    return ask(router, std::move(request), std::move(on_later));
  }

  exec::test::TemporaryFolder folder;
  std::shared_ptr<exec::ActiveLogs> active = std::make_shared<exec::ActiveLogs>();
  LogStore store{folder / "logs", active};
  Router router{Guard{{}}};
};

std::string header(const Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("the logs of a task are listed, those of its neighbours are not") {
  Logs scene;
  scene.write("7", 1, 100, "one");
  const std::string running = scene.write("7", 2, 200, "two!");
  scene.write("7.1", 1, 300, "neighbour");
  scene.write("77", 1, 400, "neighbour");
  scene.active->add(running);
  scene.active->add(scene.path_of("7", 3, 500));  // has printed nothing yet
  const json logs = json::parse(scene.get({{"id", "7"}}).body)["logs"];
  REQUIRE(logs.size() == 3);
  CHECK(logs[0]["attempt"] == 1);
  CHECK(logs[0]["size"] == 3);
  CHECK(logs[0]["running"] == false);
  CHECK(logs[1]["token"] == 200);
  CHECK(logs[1]["running"] == true);
  CHECK(logs[2]["size"] == 0);
  CHECK(logs[2]["modified"].is_null());
  CHECK(json::parse(scene.get({{"id", "8"}}).body)["logs"].empty());
}

TEST_CASE(
    "an attempt's bytes are read from an offset, the newest of that number if there are more") {
  Logs scene;
  scene.write("7", 1, 100, "old");
  scene.write("7", 1, 200, "new output");
  const Response all = scene.get({{"id", "7"}, {"attempt", "1"}});
  CHECK(all.body == "new output");
  CHECK(header(all, "Lictor-Log-Size") == "10");
  CHECK(header(all, "Lictor-Log-Attempt") == "1");
  CHECK(header(all, "Lictor-Running") == "false");
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"token", "100"}}).body == "old");
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "4"}}).body == "output");
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "99"}}).body.empty());
  CHECK(scene.get({{"id", "7"}, {"attempt", "2"}}).status == 404);
}

TEST_CASE("an attempt whose output could not be kept says why, also without a file") {
  Logs scene;
  const std::string half = scene.write("7", 1, 100, "half");
  const std::string none = scene.path_of("7", 2, 200);
  scene.active->add(half);
  scene.active->remove(half, {true, "cannot write it: No space left on device"});
  scene.active->add(none);
  scene.active->remove(none, {false, "cannot open it: No space left on device"});
  const json logs = json::parse(scene.get({{"id", "7"}}).body)["logs"];
  REQUIRE(logs.size() == 2);
  CHECK(logs[0]["error"] == "cannot write it: No space left on device");
  CHECK(logs[1]["error"] == "cannot open it: No space left on device");
  CHECK(logs[1]["size"] == 0);
  CHECK(logs[1]["running"] == false);
  CHECK(scene.get({{"id", "7"}, {"attempt", "2"}}).body.empty());
}

TEST_CASE("parameters that are no numbers are refused") {
  const Logs scene;
  CHECK(scene.get({}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "x"}}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "-1"}}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"wait", "31"}}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "4294967296"}}).status == 400);
}

TEST_CASE("who waits is answered when there is more, when the attempt ends, and when it is over") {
  Logs scene;
  const std::string path = scene.write("7", 1, 100, "begin");
  scene.active->add(path);
  const std::multimap<std::string, std::string> query{
      {"id", "7"}, {"attempt", "1"}, {"offset", "5"}, {"wait", "30"}};
  const Response more = scene.get(query, [&](int call) {
    if (call == 2) exec::test::write_file(path, "begin more");
  });
  CHECK(more.body == " more");
  CHECK(header(more, "Lictor-Running") == "true");
  CHECK(header(more, "Lictor-Log-Size") == "10");

  CHECK(header(scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "10"}, {"wait", "30"}}),
               "Lictor-Running") == "true");  // its client has gone

  const Response ended =
      scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "10"}, {"wait", "30"}}, [&](int call) {
        if (call == 2) scene.active->remove(path);
      });
  CHECK(ended.body.empty());
  CHECK(header(ended, "Lictor-Running") == "false");
}

TEST_CASE("no id leads out of the folder, and no link is followed") {
  Logs scene;
  exec::test::write_file(scene.folder / "secret.1.1.log", "secret");
  scene.write("7", 1, 1, "x");
  for (const char* id : {"../../secret", "../secret", "..", "/etc/passwd"}) {
    CAPTURE(std::string{id});
    CHECK(scene.get({{"id", id}, {"attempt", "1"}}).status == 404);
  }
  const std::string link = scene.path_of("linked", 1, 1);
  REQUIRE(symlink((scene.folder / "secret.1.1.log").c_str(), link.c_str()) == 0);
  CHECK(scene.get({{"id", "linked"}, {"attempt", "1"}}).status == 404);
  // Put there between the look at the folder and the opening: known as running, and a link.
  scene.active->add(link);
  const Response refused = scene.get({{"id", "linked"}, {"attempt", "1"}});
  CHECK(refused.status == 500);
  CHECK_FALSE(contains(refused.body, "secret"));
  // A FIFO would block whoever opens it.
  const std::string fifo = scene.path_of("fifo", 1, 1);
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  scene.active->add(fifo);
  CHECK(scene.get({{"id", "fifo"}, {"attempt", "1"}}).status == 500);
}

}  // namespace lictor::admin
