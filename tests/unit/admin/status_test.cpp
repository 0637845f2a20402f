#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "fake_backend.h"
#include "fake_exchange.h"

namespace lictor::admin {
namespace {

using nlohmann::json;

Response get(Backend& backend, const std::string& path, const std::string& queue = {}) {
  Router router{Guard{{}}};
  add_status_routes(router, backend);
  return ask(router, make_request("GET", path + (queue.empty() ? "" : "?queue=" + queue)));
}

}  // namespace

TEST_CASE("healthz says that the process lives, whatever else does not") {
  FakeBackend backend;
  backend.known.reset();
  CHECK(get(backend, "/healthz").status == 200);
}

TEST_CASE("readyz gives its reason not to be") {
  FakeBackend backend;
  CHECK(get(backend, "/readyz").status == 200);
  backend.trouble.what = "Consul has no leader";
  CHECK(get(backend, "/readyz").status == 503);
  CHECK(get(backend, "/readyz").body == "Consul has no leader\n");
  backend.trouble = {};
  backend.known->waits_for = "waiting for Consul: 403";
  CHECK(get(backend, "/readyz").status == 503);
  CHECK(get(backend, "/readyz").body == "waiting for Consul: 403\n");
  CHECK(json::parse(get(backend, "/v1/status").body)["waits_for"] == "waiting for Consul: 403");
  backend.known->waits_for.clear();
  CHECK(json::parse(get(backend, "/v1/status").body)["waits_for"].is_null());
  backend.known->stopping = true;
  CHECK(get(backend, "/readyz").body == "stopping\n");
  backend.known.reset();
  CHECK(get(backend, "/readyz").status == 503);
}

TEST_CASE("the status tells the roles, and of a follower no list that it does not keep") {
  FakeBackend backend;
  using Role = QueueStatus::Role;
  backend.known->node = "a";
  backend.known->pid = 7;
  backend.known->uptime = std::chrono::milliseconds{61'900};
  backend.known->queues = {
      {"one", Role::kLeading, {{"waiting", 3}, {"claimed_ahead", 1}, {"running", 2}}},
      {"two", Role::kFollowing}};
  const json told = json::parse(get(backend, "/v1/status").body);
  CHECK(told["node"] == "a");
  CHECK(told["pid"] == 7);
  CHECK(told["uptime_seconds"] == 61);
  CHECK(told["queues"][0] == json{{"name", "one"},
                                  {"role", "leading"},
                                  {"partitions", 1},
                                  {"leads", json::array()},
                                  {"waiting", 3},
                                  {"claimed_ahead", 1},
                                  {"running", 2},
                                  {"paused", false},
                                  {"unacked", 0},
                                  {"oldest_due_ms", 0},
                                  {"longest_running_ms", 0},
                                  {"lease_left_ms", 0}});
  CHECK_FALSE(told["queues"][1].contains("cannot_start"));
  CHECK(told["queues"][1]["waiting"].is_null());
  CHECK(told["queues"][1]["claimed_ahead"].is_null());
  backend.known->queues[0].partitions = 16;
  backend.known->queues[0].leads = {0, 7};
  backend.known->queues[1].partitions = 0;
  const json divided = json::parse(get(backend, "/v1/status").body)["queues"];
  CHECK(divided[0]["partitions"] == 16);
  CHECK(divided[0]["leads"] == json{0, 7});
  CHECK(divided[1]["partitions"].is_null());  // not known yet
  backend.known->queues[0].cannot_start = "no process";
  CHECK(json::parse(get(backend, "/v1/status").body)["queues"][0]["cannot_start"] == "no process");
  backend.known.reset();
  CHECK(get(backend, "/v1/status").status == 503);
}

TEST_CASE("why is asked of the daemon by queue and id") {
  FakeBackend backend;
  CHECK(json::parse(get(backend, "/v1/tasks/a/b/why", "q").body)[0]["reason"] == "paused");
  CHECK(get(backend, "/v1/tasks/a/b/why").status == 404);
  CHECK(get(backend, "/v1/tasks/a/c/why", "q").status == 404);
  backend.member_answers = "[the leader's answer]";
  CHECK(get(backend, "/v1/tasks/a/c/why", "q").body == "[the leader's answer]");
  CHECK(backend.asked == "leader of a/c /v1/tasks/a%2Fc/why?relayed=1&queue=q");
}

}  // namespace lictor::admin
