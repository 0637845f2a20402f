#include "admin/events.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "unit/admin/fake_exchange.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using core::Fact;

// A client of the stream. It reads until it is told not to.
class Client : public Exchange {
 public:
  explicit Client(Request request) : request_(std::move(request)) {}
  [[nodiscard]] const Request& request() const override { return request_; }
  void answer(Response) override {}
  [[nodiscard]] bool gone() const override { return false; }
  void later(std::chrono::milliseconds, std::function<void()>) override {}
  [[nodiscard]] bool send(std::string_view bytes) override {
    const std::lock_guard lock{mutex_};
    if (!reads_) return false;
    text_ += bytes;
    return true;
  }
  void end() override {}

  void stop_reading() {
    const std::lock_guard lock{mutex_};
    reads_ = false;
  }
  // Waits until the stream has `part`; all of the stream.
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
  const Request request_;
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

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST_CASE("a client is told what happens from when it comes") {
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
  // An id of an earlier start of the daemon: everything that is kept, and that some may be missing.
  const std::string all = follow(events, "/v1/events", "1-5")->until("tasks/c");
  CHECK(contains(all, "tasks/a"));
  CHECK(contains(all, "event: gap\ndata: {\"restarted\":true}"));
}

TEST_CASE("a client that cannot keep up is told how many events it missed") {
  Events events;
  const auto client = follow(events);
  tell(events, "first");
  client->until("first");
  for (int i = 0; i < 5000; ++i) tell(events, "t" + std::to_string(i));
  const std::string text = client->until("\"t4999\"");
  CHECK(contains(text, "event: gap\ndata: {\"missed\":"));
  CHECK(count(text, "event: started") < 5000);
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
  CHECK(count(text, "partition") == 1);
}

TEST_CASE("a client may ask for one queue, and one that does not read is dropped") {
  Events events;
  const auto one = follow(events, "/v1/events?queue=other");
  const auto stuck = follow(events);
  stuck->stop_reading();
  tell(events, "tasks/a");
  tell(events, "tasks/b", "other");
  const std::string text = one->until("tasks/b");
  CHECK_FALSE(contains(text, "tasks/a"));
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
  const auto answer = events.answer({request, {}, nullptr});
  REQUIRE(answer);
  const auto told = nlohmann::json::parse(answer->body)["events"];
  REQUIRE(told.size() == 3);
  CHECK(told[0]["task_id"] == "a/b");
  CHECK(told[0]["task"] == "lictor/q/tasks/a/b");
  CHECK(told[1]["task_id"] == "7");
  CHECK_FALSE(told[2].contains("task_id"));
}

TEST_CASE("a list says how many events since the last known one are kept no more") {
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
