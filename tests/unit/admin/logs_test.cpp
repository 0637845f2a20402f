#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "../exec/support.h"
#include "admin/events.h"
#include "admin/routes.h"
#include "exec/output_log.h"
#include "unit/admin/fake_exchange.h"
#include "unit/json_members.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using core::Fact;

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
  [[nodiscard]] Response get(const std::multimap<std::string, std::string>& query) const {
    Request request = make_request("GET", "/v1/logs?queue=q");
    for (const auto& [name, value] : query) request.url.query[name].push_back(value);
    return ask(router, std::move(request));
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
  check_members(logs[0], {{"attempt", 1}, {"size", 3}, {"running", false}});
  check_members(logs[1], {{"token", 200}, {"running", true}});
  check_members(logs[2], {{"size", 0}, {"modified", nullptr}});
  CHECK(json::parse(scene.get({{"id", "8"}}).body)["logs"].empty());
}

TEST_CASE("an attempt's log is read from an offset; of several with one number, the newest's") {
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
  check_members(logs[1], {{"size", 0}, {"running", false}});
  CHECK(scene.get({{"id", "7"}, {"attempt", "2"}}).body.empty());
}

TEST_CASE("parameters that are no numbers are refused") {
  const Logs scene;
  CHECK(scene.get({}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "x"}}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "1"}, {"offset", "-1"}}).status == 400);
  CHECK(scene.get({{"id", "7"}, {"attempt", "4294967296"}}).status == 400);
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

namespace {

// A client of the stream. It reads until the test stops it.
class Client : public FakeExchange {
 public:
  using FakeExchange::FakeExchange;
  [[nodiscard]] bool gone() const override { return false; }
  void later(std::chrono::milliseconds, std::function<void()>) override {}
  [[nodiscard]] bool send(std::string_view bytes) override {
    const std::lock_guard lock{mutex_};
    if (!reads_) return false;
    text_ += bytes;
    return true;
  }

  void stop_reading() {
    const std::lock_guard lock{mutex_};
    reads_ = false;
  }
  // Waits until the stream has `part`; returns all of the stream.
  std::string until(const std::string& part) {
    for (int i = 0; i < 3000; ++i) {
      {
        const std::lock_guard lock{mutex_};
        if (text_.find(part) != std::string::npos) return text_;
      }
      std::this_thread::sleep_for(10ms);
    }
    return "";
  }

 private:
  std::mutex mutex_;
  std::string text_;
  bool reads_ = true;
};

std::shared_ptr<Client> follow(Events& events, const std::string& target = "/v1/events",
                               const std::string& last_id = {}) {
  Request request = make_request("GET", target);
  if (!last_id.empty()) request.headers["last-event-id"] = last_id;
  auto client = std::make_shared<Client>(std::move(request));
  const ExchangePtr exchange = client;
  CHECK_FALSE(events.answer({client->request(), {}, exchange}).has_value());
  return client;
}

void tell(Events& events, const std::string& key, const std::string& queue = "q") {
  events.on_fact(queue, Fact{Fact::Kind::kStarted, key, {}, {}, {}, 1, 7});
}

TEST_CASE("a client gets the events from its connection on") {
  Events events;
  tell(events, "early");
  const auto client = follow(events);
  tell(events, "tasks/a");
  const std::string text = client->until("tasks/a");
  CHECK_FALSE(contains(text, "early"));
  CHECK(contains(text, "event: started\n"));
  CHECK(contains(text, R"("queue":"q","task":"tasks/a","attempt":1,"token":7})"));
}

TEST_CASE("a client that comes back with the last id gets what it missed") {
  Events events;
  const auto client = follow(events);
  tell(events, "tasks/a");
  const std::string text = client->until("tasks/a");
  const std::size_t at = text.find("id: ") + 4;
  const std::string id = text.substr(at, text.find('\n', at) - at);
  tell(events, "tasks/b");
  tell(events, "tasks/c");
  const std::string again = follow(events, "/v1/events", id)->until("tasks/c");
  CHECK(contains(again, "tasks/b"));
  CHECK_FALSE(contains(again, "tasks/a"));
  CHECK_FALSE(contains(again, "event: gap"));
  // An id from an earlier start of the daemon gives everything kept, and that some may be missing.
  const std::string all = follow(events, "/v1/events", "1-5")->until("tasks/c");
  CHECK(missing_in(all, {"tasks/a", "event: gap\ndata: {\"restarted\":true}"}) == "");
}

TEST_CASE("a client that cannot keep up gets the number of events that it missed") {
  Events events;
  const auto client = follow(events);
  tell(events, "first");
  client->until("first");
  for (int i = 0; i < 5000; ++i) tell(events, "t" + std::to_string(i));
  const std::string text = client->until("\"t4999\"");
  CHECK(contains(text, "event: gap\ndata: {\"missed\":"));
  CHECK(count_of("event: started", text) < 5000);
}

TEST_CASE("a key and a type of any length take bounded memory and do not end a stream") {
  Events events;
  const auto client = follow(events);
  auto task = std::make_shared<core::Task>();
  task->type = std::string(300'000, 't');
  Fact fact{Fact::Kind::kStarted, std::string(300'000, 'k')};
  fact.task = std::move(task);
  events.on_fact("q", fact);
  tell(events, "tasks/next");
  const std::string text = client->until("tasks/next");
  CHECK(contains(text, "kkkk"));
  CHECK(text.size() < 3'000);
}

TEST_CASE("an event about a lock has its partition, one about a task has none") {
  Events events;
  const auto client = follow(events);
  Fact leading{Fact::Kind::kLeading};
  leading.partition = 3;
  events.on_fact("q", leading);
  tell(events, "tasks/next");
  const std::string text = client->until("tasks/next");
  CHECK(contains(text, R"("queue":"q","partition":3})"));
  CHECK(count_of("partition", text) == 1);
}

TEST_CASE("a client may ask for one queue, and one that does not read is dropped") {
  Events events;
  const auto one = follow(events, "/v1/events?queue=other");
  const auto stuck = follow(events);
  stuck->stop_reading();
  tell(events, "tasks/a");
  tell(events, "tasks/b", "other");
  CHECK_FALSE(contains(one->until("tasks/b"), "tasks/a"));
  for (int i = 0; i < 3000 && stuck.use_count() > 1; ++i) std::this_thread::sleep_for(10ms);
  CHECK(stuck.use_count() == 1);
}

TEST_CASE("an event names its task as commands do, in any layout") {
  Events events;
  wire::Layout old = wire::Layout::under("lictor/", "old");
  old.tasks_prefix = "oracleTask/";
  events.set_layouts({{"q", wire::Layout::under("lictor/", "q")}, {"old", old}});
  tell(events, "lictor/q/tasks/a/b");
  tell(events, "oracleTask/7", "old");
  tell(events, "lictor/q/schedules/nightly");
  const Request request = make_request("GET", "/v1/events?format=json");
  const auto answer = events.answer({request, {}, nullptr}).value();
  const auto told = nlohmann::json::parse(answer.body)["events"];
  REQUIRE(told.size() == 3);
  check_members(told[0], {{"task_id", "a/b"}, {"task", "lictor/q/tasks/a/b"}});
  CHECK(told[1]["task_id"] == "7");
  CHECK_FALSE(told[2].contains("task_id"));
}

TEST_CASE("a list says how many events since the last known one are gone") {
  Events events;
  const auto list = [&](const std::string& after) {
    const Request request = make_request("GET", "/v1/events?format=json&after=" + after);
    return nlohmann::json::parse(events.answer({request, {}, nullptr})->body);
  };
  tell(events, "tasks/a");
  const std::string known = list("")["next"];
  for (int i = 0; i < 1'000; ++i) tell(events, "tasks/b");
  CHECK_FALSE(list(known).contains("missed"));
  tell(events, "tasks/c");
  CHECK(list(known)["missed"] == 1);
  CHECK(list(known)["events"].size() == 1'000);
  CHECK_FALSE(list("").contains("missed"));
}

}  // namespace

}  // namespace lictor::admin
