#include "client/pipeline.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "fake_consul.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;
using test::reply;
using test::undelivered;

http::Request request(const std::string& target) {
  http::Request made;
  made.target = target;
  return made;
}

// Keeps what was sent until the test answers it, or answers at once.
class Held : public net::Transport {
 public:
  RequestId send(net::Request request, net::Callback done) override {
    {
      const std::lock_guard lock{mutex_};
      sent += request.target;
      last_sent = boot_now();
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

  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock{mutex_};
    return sent.size();
  }

  std::string sent;
  Instant last_sent{};
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
  // The fourth may have to wait a moment, so as not to leave together with the third.
  CHECK(network.sent.starts_with("abc"));
  CHECK(pipeline.next().response.body == "a");  // in their order, whichever was answered first
  CHECK(pipeline.next().response.body == "b");
  network.at_once = true;
  network.answer(0);
  CHECK(pipeline.next().response.body == "c");
  if (!network.waiting.empty()) network.answer(0);
  CHECK(pipeline.next().response.body == "d");
  CHECK(network.sent == "abcd");
}

TEST_CASE("two dependent requests are not sent at the same moment") {
  Held network;
  Pipeline pipeline{network, 2, true};
  pipeline.add(request("a"));
  std::this_thread::sleep_for(60ms);  // so long an answer takes, at least
  network.answer(0);
  CHECK(pipeline.next().response.body == "a");
  network.at_once = true;
  pipeline.add(request("b"));
  CHECK(pipeline.next().response.body ==
        "b");  // alone it leaves at once, and makes answers quicker
  network.at_once = false;
  const Instant begin = boot_now();
  pipeline.add(request("c"));
  network.at_once = true;
  pipeline.add(request("d"));
  std::thread answerer{[&] {
    while (network.count() < 4) std::this_thread::sleep_for(1ms);
    network.answer(0);
  }};
  CHECK(pipeline.next().response.body == "c");
  answerer.join();
  CHECK(network.last_sent - begin >= 60ms * 7 / 8 / 3);
}

TEST_CASE("independent requests are sent at once") {
  Held network;
  Pipeline pipeline{network, 3};
  pipeline.add(request("a"));
  std::this_thread::sleep_for(60ms);
  network.answer(0);
  CHECK(pipeline.next().response.body == "a");
  for (const char* target : {"b", "c", "d", "e"}) pipeline.add(request(target));
  CHECK(network.sent == "abcd");
  network.answer(2);
  CHECK(network.sent == "abcde");
  while (!network.waiting.empty()) network.answer(0);
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
}  // namespace lictor::client
