#include "client/record_writer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/new_record.h"
#include "client/pipeline.h"
#include "fake_consul.h"

namespace lictor::client::test {
namespace {

using namespace std::chrono_literals;
using http::Delivery;

// Carries transactions out, one at a time, each when the test allows it: on threads of its own, as
// the network would.
class OneTransactionAtATime : public net::Transport {
 public:
  ~OneTransactionAtATime() override {
    for (std::thread& thread : threads_) thread.join();
  }
  RequestId send(net::Request request, net::Callback done) override {
    const std::lock_guard lock{mutex_};
    ++sent;
    const bool held = std::exchange(holds_first_, false);
    threads_.emplace_back([this, held, request = std::move(request), done = std::move(done)] {
      done(serve(request, held));
    });
    return RequestId{1};
  }
  void cancel(RequestId) override {}

  /// The transaction that begins with `key` is carried out after `others`.
  void hold_back(const std::string& key, std::size_t others) {
    waits_for_others_.insert(key);
    others_ = others;
  }
  /// The first transaction, whatever it begins with.
  void hold_back_first(std::size_t others) {
    holds_first_ = true;
    others_ = others;
  }
  /// Answers `key`'s transaction, once, instead of carrying it out; call again for the next time.
  void refuse(const std::string& key, http::Response answer) {
    refused_[key].push_back(std::move(answer));
  }

  std::vector<std::string> written;  // in the order in which they appeared
  std::map<std::string, std::string> values;
  std::map<std::string, std::size_t> created_at;
  std::vector<std::string> transactions;  // the first keys of those that were carried out
  std::size_t most_operations = 0;
  std::size_t out_of_order = 0;
  std::size_t sent = 0;

 private:
  http::Response serve(const net::Request& request, bool held) {
    std::unique_lock lock{mutex_};
    const auto operations = nlohmann::json::parse(request.body);
    const std::string first = operations[0]["KV"]["Key"];
    held = held || waits_for_others_.contains(first);
    turn_.wait(lock, [&] { return !held || answered_ >= others_; });
    waits_for_others_.erase(first);
    ++answered_;
    turn_.notify_all();
    return carry_out(operations);
  }
  http::Response carry_out(const nlohmann::json& operations) {
    const std::string first = operations[0]["KV"]["Key"];
    if (auto& answers = refused_[first]; !answers.empty()) {
      http::Response answer = std::move(answers.front());
      answers.pop_front();
      return answer;
    }
    most_operations = std::max(most_operations, operations.size());
    std::set<std::string> there{written.begin(), written.end()};
    std::vector<std::string> created;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto& kv = operations[i]["KV"];
      const std::string key = kv["Key"];
      if (kv["Verb"] == "cas" && there.contains(key)) {
        return failed("failed to set key, index is stale", i);
      }
      if (kv["Verb"] == "get" && !there.contains(key)) {
        ++out_of_order;
        return failed("key doesn't exist", i);
      }
      if (kv["Verb"] == "cas") created.push_back(key);
    }
    written.insert(written.end(), created.begin(), created.end());
    for (const auto& operation : operations) {
      const auto& kv = operation["KV"];
      if (kv["Verb"] != "cas") continue;
      values[kv["Key"]] = base64_decode(kv["Value"].get<std::string>()).value();
      created_at[kv["Key"]] = transactions.size();
    }
    transactions.push_back(first);
    return reply(200, result(created.front(), "{}", ++index_));
  }

  std::mutex mutex_;
  std::condition_variable turn_;
  std::vector<std::thread> threads_;
  std::set<std::string> waits_for_others_;
  bool holds_first_ = false;
  std::map<std::string, std::deque<http::Response>> refused_;
  std::size_t answered_ = 0;
  std::size_t others_ = 0;
  std::uint64_t index_ = 10;
};

std::string id(std::size_t i) {
  std::string number = std::to_string(i);
  return std::string(6 - number.size(), '0') + number;
}

std::string key(std::size_t i) { return "q/tasks/" + id(i); }

// The i-th task.
NewRecord task(std::size_t i, std::string record = "{}") { return {id(i), std::move(record)}; }

struct Written {
  OneTransactionAtATime consul;
  Store store{consul};
  Queue queue{store, "q", wire::Layout::under("", "q")};
  std::vector<RecordWriter::Settled> settled;
  RecordWriter writer;

  explicit Written(SubmitOrder order = SubmitOrder::kAsGiven)
      : writer{queue, [this](const auto& s) { settled.push_back(s); }, {}, order} {}

  void write(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) writer.add(task(i));
    writer.finish();
  }
  void check_order(std::size_t count) const {
    REQUIRE(consul.written.size() == count);
    for (std::size_t i = 0; i < count; ++i) CHECK(consul.written[i] == key(i));
  }
  void check_settled(std::size_t count) const {
    std::size_t next = 0;
    for (const auto& run : settled) {
      CHECK(run.first == next);
      CHECK(run.created);
      next += run.count;
    }
    CHECK(next == count);
  }
};

TEST_CASE("many records go in transactions of Consul's size and are settled in order") {
  Written scene;
  scene.write(1'000);
  scene.check_order(1'000);
  CHECK(scene.consul.most_operations <= limits::kLeastOperations);
  scene.check_settled(1'000);
  CHECK_FALSE(scene.writer.stopped());
}

TEST_CASE("a transaction that overtakes the one before it is refused and written again") {
  Written scene;
  scene.consul.hold_back(key(0), 1);  // another is there before it
  scene.write(300);
  scene.check_order(300);
  CHECK(scene.consul.out_of_order >= 1);
  CHECK_FALSE(scene.writer.stopped());
}

TEST_CASE("with any order no transaction waits for another, and all are settled in order") {
  Written scene{SubmitOrder::kAny};
  scene.consul.hold_back(key(0), 3);
  scene.write(1'000);
  REQUIRE(scene.consul.written.size() == 1'000);
  CHECK(scene.consul.written.front() != key(0));
  CHECK(scene.consul.out_of_order == 0);
  CHECK(scene.consul.sent == 16);  // none twice
  scene.check_settled(1'000);
}

TEST_CASE("with any order existing tasks are reported, and an error stops unsent transactions") {
  Written scene{SubmitOrder::kAny};
  scene.consul.written = {key(70)};
  scene.consul.refuse(key(126), failed("Permission denied"));
  scene.write(1'000);
  REQUIRE(scene.writer.stopped());
  CHECK(scene.writer.stopped()->code == ErrorCode::kPermissionDenied);
  REQUIRE(scene.settled.size() >= 3);
  CHECK(scene.settled[1].created->existing == std::vector<std::size_t>{7});
  CHECK_FALSE(scene.settled[2].created);
  CHECK(scene.consul.written.size() < 1'000);
  CHECK(std::count(scene.consul.written.begin(), scene.consul.written.end(), key(126)) == 0);
}

// The ids in the order in which their tasks would start.
std::vector<std::string> order_of_start(const OneTransactionAtATime& consul) {
  std::vector<std::tuple<std::int64_t, std::size_t, std::string>> order;
  for (const auto& [key, value] : consul.values) {
    order.emplace_back(nlohmann::json::parse(value)["taskTime"], consul.created_at.at(key), key);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> ids;
  for (const auto& [time, created, key] : order) ids.push_back(key.substr(8));  // q/tasks/
  return ids;
}

TEST_CASE("tasks without a time start in the order of the calls, not of the transactions") {
  SubmitOrder order = SubmitOrder::kAny;
  std::chrono::milliseconds most_ahead = 31ms;  // one for each transaction but the first
  SUBCASE("in any order") {}
  SUBCASE("in order") {
    order = SubmitOrder::kAsGiven;
    most_ahead = 0ms;
  }
  Written scene{order};
  scene.consul.hold_back_first(order == SubmitOrder::kAny ? 5 : 1);
  TaskIds ids{1};
  std::vector<std::string> given;
  constexpr WallTime kNow{1'795'228'350'949ms};
  std::function<std::string(std::size_t)> line = [](std::size_t) { return "{}"; };
  SUBCASE("with ids that are made") {}
  SUBCASE("with ids that are in order") {
    line = [](std::size_t i) { return R"({"taskId":")" + id(i) + "\"}"; };
  }
  SUBCASE("with ids that are not") {
    line = [](std::size_t i) { return R"({"taskId":")" + id(i * 7 % 2'000) + "\"}"; };
  }
  for (std::size_t i = 0; i < 2'000; ++i) {
    // Many within a millisecond, as always.
    const WallTime now = kNow + std::chrono::milliseconds{i / 500};
    auto task = complete_record(line(i), "T", now, ids).value();
    given.push_back(task.id);
    scene.writer.add(std::move(task));
  }
  scene.writer.finish();
  if (order == SubmitOrder::kAny) {
    const auto& transactions = scene.consul.transactions;
    CHECK_FALSE(std::is_sorted(transactions.begin(), transactions.end()));
  }
  CHECK((order_of_start(scene.consul) == given));
  // The ids count 3 ms of the clock. If the ids are not in order, a task or more is ahead of that.
  if (std::is_sorted(given.begin(), given.end())) {
    const auto last = nlohmann::json::parse(scene.consul.values["q/tasks/" + given.back()]);
    CHECK(last["taskTime"] <= (kNow + 3ms + most_ahead).time_since_epoch().count());
  }
}

TEST_CASE("a record that fills a transaction keeps its place") {
  Written scene;
  scene.consul.hold_back(key(0), 1);
  for (std::size_t i = 0; i < 3; ++i) scene.writer.add(task(i));
  scene.writer.add(task(3, std::string(380'000, ' ')));
  for (std::size_t i = 4; i < 200; ++i) scene.writer.add(task(i));
  scene.writer.finish();
  scene.check_order(200);
}

TEST_CASE("after an error no later record is written") {
  Written scene;
  scene.consul.refuse(key(63), failed("Permission denied"));
  scene.write(1'000);
  scene.check_order(63);
  REQUIRE(scene.writer.stopped());
  CHECK(scene.writer.stopped()->code == ErrorCode::kPermissionDenied);
  REQUIRE(scene.settled.size() == 2);
  CHECK(scene.settled[0].created);
  CHECK(scene.settled[1].first == 63);
  CHECK_FALSE(scene.settled[1].created);
}

TEST_CASE("a transaction that Consul did not take is sent again, and those after it") {
  Written scene;
  scene.consul.refuse(key(63), undelivered(Delivery::kNotSent));
  scene.write(400);
  scene.check_order(400);
  CHECK_FALSE(scene.writer.stopped());
}

TEST_CASE("a task submitted after many others has a later time than they have") {
  Written scene{SubmitOrder::kAny};
  TaskIds ids{1};
  const WallTime begin = wall_now();
  std::string last;
  for (std::size_t i = 0; i < 4'000; ++i) {
    auto task = complete_record("{}", "T", begin, ids).value();
    last = task.id;
    scene.writer.add(std::move(task));
  }
  scene.writer.finish();
  const auto record = nlohmann::json::parse(scene.consul.values["q/tasks/" + last]);
  CHECK(record["taskTime"] > begin.time_since_epoch().count() + 50);
  CHECK(record["taskTime"] < wall_now().time_since_epoch().count());
}

TEST_CASE("a refusal by Consul is reported for each task") {
  OneTransactionAtATime consul;
  lictor::Client client = client_of(consul);
  consul.refuse("lictor/q/tasks/63", failed("Permission denied"));
  std::vector<NewTask> tasks(500, NewTask{.type = "T"});
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].id = std::to_string(i);
  const auto results = client.submit_many(tasks);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i < 63) {
      CHECK(results[i]);
    } else {
      REQUIRE_FALSE(results[i]);
      CHECK(results[i].error().code == ErrorCode::kPermissionDenied);
    }
  }
  CHECK(consul.written.size() == 63);
}

http::Request request(const std::string& target) {
  http::Request made;
  made.target = target;
  return made;
}

// Keeps the requests until the test answers them, or answers at once.
class Held : public net::Transport {
 public:
  RequestId send(net::Request request, net::Callback done) override {
    {
      const std::lock_guard lock{mutex_};
      sent += request.target;
      if (!at_once) waiting.emplace_back(request.target, std::exchange(done, {}));
    }
    if (done) done(reply(200, request.target));
    return RequestId{1};
  }
  void cancel(RequestId) override {}

  void answer(std::size_t which, int status = 200) {
    std::unique_lock lock{mutex_};
    auto [target, done] = std::move(waiting.at(which));
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
    lock.unlock();
    done(status == 0 ? undelivered(http::Delivery::kLost) : reply(status, target));
  }

  std::string sent;
  bool at_once = false;
  std::vector<std::pair<std::string, net::Callback>> waiting;

 private:
  std::mutex mutex_;
};

TEST_CASE("a request is sent when an answer has come, with a limit on requests under way") {
  Held network;
  Pipeline pipeline{network, 2};
  for (const char* target : {"a", "b", "c", "d"}) pipeline.add(request(target));
  CHECK(network.sent == "ab");
  network.answer(1);
  network.answer(0);
  CHECK(network.sent == "abcd");
  CHECK(pipeline.next().response.body == "a");  // in their order, whichever was answered first
  CHECK(pipeline.next().response.body == "b");
  network.answer(1);
  network.answer(0);
  CHECK(pipeline.next().response.body == "c");
  CHECK(pipeline.next().response.body == "d");
}

TEST_CASE("answers within the sending call are handled") {
  Held network;
  network.at_once = true;
  Pipeline pipeline{network, 2};
  for (int i = 0; i < 100; ++i) pipeline.add(request("a"));
  for (int i = 0; i < 100; ++i) CHECK(pipeline.next().response.body == "a");
  pipeline.add(request("b"));
  CHECK(pipeline.next().response.body == "b");
}

TEST_CASE("a failure holds up later requests until it was returned") {
  Held network;
  Pipeline pipeline{network, 2};
  for (const char* target : {"a", "b", "c", "d"}) pipeline.add(request(target));
  SUBCASE("refused") { network.answer(0, 409); }
  SUBCASE("lost") { network.answer(0, 0); }
  network.answer(0);
  CHECK(network.sent == "ab");
  CHECK(pipeline.next().response.status != 200);
  CHECK(pipeline.next().response.body == "b");
  CHECK(network.sent == "ab");  // what the refusal means is settled first
  network.at_once = true;
  CHECK(pipeline.next().response.body == "c");
  CHECK(pipeline.next().response.body == "d");
}

TEST_CASE("unsent requests can be dropped") {
  Held network;
  Pipeline pipeline{network, 1};
  for (const char* target : {"a", "b", "c"}) pipeline.add(request(target));
  CHECK(pipeline.drop_unsent() == 2);
  CHECK(pipeline.drop_unsent() == 0);
  network.answer(0);
  CHECK(pipeline.next().response.body == "a");
  pipeline.add(request("d"));
  CHECK(network.sent == "ad");
  network.answer(0);
}

}  // namespace

}  // namespace lictor::client::test
