#include "runtime/membership.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../client/fake_consul.h"
#include "base/time_text.h"
#include "temporary_folder.h"

namespace lictor::runtime {
namespace {

using client::test::FakeConsul;
using client::test::reply;
using client::test::undelivered;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kSession = R"({"ID":"5e55-1"})";

// A membership whose replies come at once, and a clock that is turned by hand.
class Members {
 public:
  explicit Members(std::deque<http::Response> replies) : consul(std::move(replies)) {}
  ~Members() { CHECK(consul.all_asked()); }
  // Starts one more; those before it were killed, and have withdrawn nothing.
  Membership& start() {
    Membership::Options options;
    options.node = "a b";
    options.value = R"({"node":"a b"})";
    options.keys = {"lictor/q/members/a b"};
    options.session_checks = {"serfHealth"};
    options.state_dir = folder_.path();
    members_.push_back(std::make_unique<Membership>(std::move(options), *loop_, consul));
    pass(0s);
    return *members_.back();
  }
  // Lets time pass, until nothing more is asked at that time.
  void pass(Duration time) {
    now += time;
    for (int i = 0; i < 10; ++i) {
      members_.back()->step(now);
      loop_->run_posted();
    }
  }
  [[nodiscard]] std::string asked(std::size_t i) const {
    REQUIRE(i < consul.asked.size());
    return consul.asked[i].method + " " + consul.asked[i].target;
  }

  FakeConsul consul;
  Instant now{1h};

 private:
  const unit::TemporaryFolder folder_;
  std::unique_ptr<Loop> loop_ = Loop::create().value();
  std::vector<std::unique_ptr<Membership>> members_;
};

TEST_CASE("an entry is held by a session that deletes it, without lock-delay, and renewed") {
  Members scene{{reply(200, kSession), reply(200, "true"), reply(200, "[]"), reply(200, "true"),
                 reply(404, ""), reply(500, ""), reply(200, "true")}};
  Membership& membership = scene.start();
  REQUIRE(scene.consul.asked.size() == 2);
  CHECK(scene.asked(0) == "PUT /v1/session/create");
  const json session = json::parse(scene.consul.asked[0].body);
  CHECK(session["Behavior"] == "delete");
  CHECK(session["TTL"] == "30s");
  CHECK(session["LockDelay"] == "0s");
  CHECK(scene.asked(1) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-1");
  const json entry = json::parse(scene.consul.asked[1].body);
  CHECK(entry["node"] == "a b");
  CHECK(parse_rfc3339(entry["seen"].get<std::string>()));

  CHECK(membership.next_deadline() == scene.now + 10s);
  scene.pass(10s);
  CHECK(scene.asked(2) == "PUT /v1/session/renew/5e55-1");
  CHECK(scene.asked(3) == scene.asked(1));  // seen again
  scene.pass(10s);                          // it is said to be gone, and is not destroyed
  membership.withdraw();
  CHECK(scene.asked(6) == "PUT /v1/session/destroy/5e55-1");
}

TEST_CASE("a session that is gone, or is said to be, is ended and made again") {
  Members scene{{reply(200, kSession), reply(200, "true"), reply(404, "not found"),
                 reply(200, "true"), reply(200, R"({"ID":"5e55-2"})"), reply(200, "true")}};
  scene.start();
  scene.pass(10s);
  CHECK(scene.asked(3) == "PUT /v1/session/destroy/5e55-1");
  CHECK(scene.asked(5) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-2");
}

// Consul gives this answer while it reads its log, and refuses writes until it has a leader.
TEST_CASE("no session is made before one that is said to be gone is destroyed") {
  Members scene{{reply(200, kSession), reply(200, "true"), reply(404, "not found"),
                 reply(500, "No cluster leader"), undelivered(http::Delivery::kLost),
                 reply(200, "true"), reply(200, R"({"ID":"5e55-2"})"), reply(200, "true")}};
  scene.start();
  for (int i = 0; i < 20; ++i) scene.pass(1s);
  for (const std::size_t i : {3, 4, 5}) CHECK(scene.asked(i) == "PUT /v1/session/destroy/5e55-1");
  CHECK(scene.asked(6) == "PUT /v1/session/create");
}

TEST_CASE("a daemon that comes back takes up the session that it had, if it still lives") {
  Members scene{{reply(200, kSession), reply(200, "true"), reply(200, "[]"), reply(200, "true"),
                 reply(404, "not found"), reply(200, "true"), reply(200, R"({"ID":"5e55-2"})"),
                 reply(200, "true"), reply(403, "Permission denied"),
                 reply(200, R"({"ID":"5e55-3"})"), reply(200, "true")}};
  scene.start();
  scene.start();
  CHECK(scene.asked(2) == "PUT /v1/session/renew/5e55-1");
  CHECK(scene.asked(3) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-1");
  scene.start();
  CHECK(scene.asked(4) == "PUT /v1/session/renew/5e55-1");
  CHECK(scene.asked(7) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-2");
  scene.start();  // with a token that may not renew it
  scene.pass(1s);
  CHECK(scene.asked(10) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-3");
}

TEST_CASE("failed requests are tried again, later and later, and the session is still renewed") {
  Members scene{{undelivered(http::Delivery::kNotSent), undelivered(http::Delivery::kLost),
                 reply(200, kSession), reply(403, "Permission denied"), reply(200, "[]"),
                 reply(200, "false"), reply(200, "[]"), reply(200, "true"), reply(200, "[]"),
                 reply(200, "true")}};
  Membership& membership = scene.start();
  CHECK(membership.next_deadline() == scene.now + 1s);
  scene.pass(1s);
  CHECK(membership.next_deadline() == scene.now + 2s);
  scene.pass(2s);
  REQUIRE(scene.consul.asked.size() == 4);
  for (int i = 0; i < 3; ++i) {
    CHECK(membership.next_deadline() == scene.now + 10s);
    scene.pass(10s);
  }
  CHECK(scene.asked(4) == "PUT /v1/session/renew/5e55-1");
  CHECK(scene.asked(5) == "PUT /v1/kv/lictor/q/members/a%20b?acquire=5e55-1");
  CHECK(scene.asked(7) == scene.asked(5));
  CHECK(scene.asked(8) == scene.asked(4));
}

TEST_CASE("each reason for not having joined is reported; a new value is written at once") {
  Members scene{{undelivered(http::Delivery::kNotSent), reply(403, "Permission denied"),
                 reply(200, kSession), reply(200, "true"), reply(200, "[]"), reply(200, "true")}};
  Membership& membership = scene.start();
  CHECK_FALSE(membership.joined());
  const std::string away = membership.trouble();
  CHECK_FALSE(away.empty());
  scene.pass(1s);
  CHECK(membership.trouble().find("403 (Permission denied)") != std::string::npos);
  membership.set_value(R"({"node":"a b","n":1})");
  scene.pass(2s);
  CHECK(membership.joined());
  CHECK(membership.trouble().empty());
  CHECK(json::parse(scene.consul.asked[3].body)["n"] == 1);
  membership.set_value(R"({"node":"a b","n":2})");
  scene.pass(0s);
  CHECK(json::parse(scene.consul.asked[5].body)["n"] == 2);
}

TEST_CASE("after an outage the entry is there soon, however long it was") {
  std::deque<http::Response> replies(20, undelivered(http::Delivery::kNotSent));
  Members scene{std::move(replies)};
  const Membership& membership = scene.start();
  while (!scene.consul.all_asked()) {
    CHECK(membership.next_deadline() <= scene.now + 5s);
    scene.pass(membership.next_deadline() - scene.now);
  }
  CHECK(membership.next_deadline() <= scene.now + 5s);
}

}  // namespace
}  // namespace lictor::runtime
