#include "net/patient_transport.h"

#include <future>
#include <vector>

#include <doctest/doctest.h>

namespace lictor::net {
namespace {

using namespace std::chrono_literals;

// Keeps what it is asked until it goes, or is told to answer.
class Mute : public Transport {
 public:
  explicit Mute(std::vector<Callback>& kept) : kept_(kept) {}
  ~Mute() override {
    for (const Callback& done : kept_) done({});
  }
  RequestId send(Request, Callback done) override {
    kept_.push_back(std::move(done));
    return RequestId{kept_.size()};
  }
  void cancel(RequestId) override {}

 private:
  std::vector<Callback>& kept_;
};

struct Scene {
  explicit Scene(Duration after)
      : transport(std::make_unique<PatientTransport>(std::make_unique<Mute>(kept), after, [this] {
          ++times;
          told.set_value();
        })) {}
  ~Scene() { transport.reset(); }

  void ask(bool long_poll) {
    Request request;
    request.long_poll = long_poll;
    transport->send(std::move(request), [this](const Response&) { ++answered; });
  }
  void answer() {
    kept.front()({});
    kept.erase(kept.begin());
  }

  std::vector<Callback> kept;
  std::promise<void> told;
  int times = 0;
  int answered = 0;
  std::unique_ptr<PatientTransport> transport;
};

}  // namespace

TEST_SUITE_BEGIN("net");

TEST_CASE("a request that waits for long is told, once") {
  Scene scene{1ms};
  scene.ask(false);
  scene.ask(false);
  scene.told.get_future().wait();
  scene.ask(false);
  scene.transport.reset();
  CHECK(scene.times == 1);
  CHECK(scene.answered == 3);
}

TEST_CASE("what was answered before, and a blocking query, is not told") {
  {
    Scene scene{1h};
    scene.ask(false);
    scene.answer();
    scene.ask(false);
    scene.transport.reset();  // does not wait for the hour
    CHECK(scene.answered == 2);
    CHECK(scene.times == 0);
  }
  Scene scene{1ms};
  scene.ask(true);
  scene.ask(false);  // told, and for this one alone
  scene.told.get_future().wait();
  scene.transport.reset();
  CHECK(scene.times == 1);
  CHECK(scene.answered == 2);
}

TEST_SUITE_END();

}  // namespace lictor::net
