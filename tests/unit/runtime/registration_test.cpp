#include "runtime/registration.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../client/fake_consul.h"

namespace lictor::runtime {
namespace {

using client::test::FakeConsul;
using client::test::reply;
using client::test::undelivered;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kPass = "/v1/agent/check/pass/lictor-a%20b";
constexpr const char* kRegister = "/v1/agent/service/register";

// A registration whose replies come at once, and a clock that is turned by hand.
struct RegistrationScene {
  explicit RegistrationScene(std::deque<http::Response> replies,
                             const std::vector<std::string>& admin_urls = {})
      : consul(std::move(replies)), registration("a b", "1.2", admin_urls, consul) {
    registration.step(now);
  }
  void pass(Duration time) { registration.step(now += time); }
  [[nodiscard]] std::vector<std::string> asked() const {
    std::vector<std::string> targets;
    for (const http::Request& request : consul.asked) targets.push_back(request.target);
    return targets;
  }
  // The service as it was registered last.
  [[nodiscard]] json service() const {
    REQUIRE(consul.asked.back().target == kRegister);
    return json::parse(consul.asked.back().body);
  }

  FakeConsul consul;
  Registration registration;
  Instant now{1h};
};

TEST_CASE("a service is registered with a check, passed three times in its TTL, and withdrawn") {
  RegistrationScene scene{std::deque(9, reply(200))};
  CHECK(scene.service() == json::parse(R"({"ID": "lictor-a b", "Name": "lictor", "Tags": [],
      "Meta": {"version": "1.2"}, "Check": {"CheckID": "lictor-a b", "Name": "lictor's loop runs",
      "TTL": "30s", "Status": "passing", "DeregisterCriticalServiceAfter": "1h"}})"));
  // The agent may know the check already, as critical.
  CHECK(scene.registration.next_deadline() == scene.now + 1s);
  scene.pass(1s);
  scene.pass(9s);
  scene.pass(1s);
  for (int i = 0; i < 5; ++i) scene.pass(10s);
  // The agent may have forgotten it: it is registered again each minute.
  std::vector<std::string> expected{kRegister, kPass, kPass, kPass, kPass, kPass, kPass, kRegister};
  CHECK(scene.asked() == expected);
  scene.registration.withdraw();
  expected.emplace_back("/v1/agent/service/deregister/lictor-a%20b");
  CHECK(scene.asked() == expected);
}

TEST_CASE("the service has the first admin address that others reach, and the node's for a name") {
  const std::vector<std::tuple<std::vector<std::string>, json, json>> table{
      {{"http://127.0.0.1:1"}, nullptr, 1},
      {{"http://127.0.0.1:1", "http://[::1]:2"}, nullptr, 1},
      {{"http://127.0.0.1:1", "http://10.0.0.5:2", "http://10.0.0.6:3"}, "10.0.0.5", 2},
      {{"http://[::1]:1", "http://[fd00::5]:2"}, "fd00::5", 2},
      {{"http://host.example:3", "http://10.0.0.5:2"}, nullptr, 3},
      {{"unix:///run/admin.sock", "http://127.0.0.1:1"}, nullptr, 1},
      {{"unix:///run/admin.sock"}, nullptr, nullptr}};
  for (const auto& [urls, address, port] : table) {
    CAPTURE(urls.front());
    const json service = RegistrationScene{{reply(200)}, urls}.service();
    CHECK(service.value("Address", json{}) == address);
    CHECK(service.value("Port", json{}) == port);
  }
}

TEST_CASE("a registration that was not taken is sent with the next pass, a refused one is not") {
  for (const auto& [first, again] : {std::pair{reply(500, "No cluster leader"), true},
                                     {undelivered(http::Delivery::kLost), true},
                                     {reply(403, "ACL not found"), false},
                                     {reply(403, "Permission denied"), false}}) {
    CAPTURE(first.body);
    RegistrationScene scene{{first, reply(200), reply(200)}};
    scene.pass(10s);
    scene.pass(10s);
    CHECK(scene.asked() == std::vector<std::string>{kRegister, again ? kRegister : kPass, kPass});
  }
}

TEST_CASE("a change of the queues that this daemon leads is registered at once") {
  RegistrationScene scene{std::deque(4, reply(200))};
  scene.registration.set_leading({"q", "r"});
  scene.pass(1s);
  CHECK(scene.service()["Tags"] == json{"leader", "leader-q", "leader-r"});
  scene.registration.set_leading({"q", "r"});
  scene.pass(500ms);
  CHECK(scene.asked().size() == 2);
  scene.registration.set_leading({});
  scene.pass(1s);
  CHECK(scene.service()["Tags"].empty());
  CHECK(scene.asked().size() == 3);
}

}  // namespace
}  // namespace lictor::runtime
