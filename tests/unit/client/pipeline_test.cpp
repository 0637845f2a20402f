#include "client/pipeline.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "fake_consul.h"

namespace lictor::client {
namespace {

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
}  // namespace lictor::client
