// Consul's peculiarities that lictor must live with, in the order of consul.md: those that need
// time, a seed or a large body. tests/live/model_test.cpp compares all others with a real agent, by
// random scripts.

#include "dev/model.h"

#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace lictor::dev {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Consul {
  Model model;
  Instant now{1h};

  explicit Consul(std::uint64_t seed = 1) : model({seed, "dev"}) {}

  http::Response ask(std::string method, std::string target, std::string body = {}) {
    return *model.handle(now, {std::move(method), std::move(target), std::move(body)}, true);
  }
  std::string put(std::string target, std::string body = {}) {
    return ask("PUT", std::move(target), std::move(body)).body;
  }
  json get(std::string target) {
    return json::parse(ask("GET", std::move(target)).body, nullptr, false);
  }
  std::string session(const std::string& body = R"({"LockDelay":"15s","TTL":"10s"})") {
    return json::parse(put("/v1/session/create", body))["ID"];
  }
  bool lives(const std::string& session) { return !get("/v1/session/info/" + session).empty(); }
  std::uint64_t index_of(const std::string& key) {
    return get("/v1/kv/" + key)[0]["ModifyIndex"].get<std::uint64_t>();
  }
  bool waits(const std::string& target) {
    http::Request request;
    request.target = target;
    return !model.handle(now, request);
  }
};

TEST_CASE("a session ends one to two TTLs after its last renewal, which the seed decides") {
  std::set<std::int64_t> lives_ns;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Consul consul{seed};
    const std::string session = consul.session();
    consul.now += 9s;
    CHECK(consul.ask("PUT", "/v1/session/renew/" + session).status == 200);
    const Instant renewed = consul.now;
    const Instant end = consul.model.next_deadline();
    CHECK(end >= renewed + 10s);
    CHECK(end <= renewed + 20s);
    consul.now = end - 1ns;
    CHECK(consul.lives(session));
    consul.now = end;
    CHECK_FALSE(consul.lives(session));
    CHECK(consul.ask("PUT", "/v1/session/renew/" + session).status == 404);
    lives_ns.insert((end - renewed).count());
  }
  CHECK(lives_ns.size() > 10);
}

TEST_CASE("a new leader starts the TTLs again") {
  Consul consul;
  const std::string session = consul.session();
  consul.now += 9s;
  consul.model.fail_over(consul.now);
  CHECK(consul.model.next_deadline() >= consul.now + 10s);
  CHECK(consul.lives(session));
}

TEST_CASE("a key that a snapshot brings back has its old index, and is in no lock-delay") {
  Consul consul;
  const std::string session = consul.session();
  CHECK(consul.put("/v1/kv/k", "old") == "true");
  const KvRecord before = *consul.model.state().find("k");
  CHECK(consul.put("/v1/kv/k?acquire=" + session, "new") == "true");
  consul.model.invalidate_session(consul.now, session);
  consul.model.restore(before);
  CHECK(consul.get("/v1/kv/k")[0]["ModifyIndex"] == before.modify_index);
  CHECK(consul.put("/v1/kv/k?acquire=" + consul.session(), "newer") == "true");
  CHECK(consul.model.state().find("k")->modify_index > before.modify_index);
}

TEST_CASE("the lock-delay follows an invalidation, not a release, and bars the lock alone") {
  Consul consul;
  const std::string first = consul.session();
  const std::string second = consul.session(R"({"TTL":""})");
  CHECK(consul.put("/v1/kv/k?acquire=" + first, "1") == "true");
  CHECK(consul.put("/v1/kv/k?acquire=" + second) == "false");
  CHECK(consul.put("/v1/kv/k?release=" + first) == "true");
  CHECK(consul.put("/v1/kv/k?acquire=" + second) == "true");

  consul.model.invalidate_session(consul.now, second);
  CHECK_FALSE(consul.get("/v1/kv/k")[0].contains("Session"));
  const std::uint64_t index = consul.model.index();
  CHECK(consul.put("/v1/kv/k?acquire=" + first) == "false");
  CHECK(consul.model.index() == index);  // answered before the log is reached
  const std::string lock = R"([{"KV":{"Verb":"lock","Key":"k","Session":")" + first + R"("}}])";
  CHECK(
      consul.put("/v1/txn", lock) ==
      R"({"Results":null,"Errors":[{"OpIndex":0,"What":"failed to lock key \"k\" due to lock delay"}]})");
  CHECK(consul.put("/v1/kv/k", "2") == "true");
  CHECK(consul.ask("DELETE", "/v1/kv/k").body == "true");
  consul.now += 15s - 1ns;
  CHECK(consul.put("/v1/session/renew/" + first).front() == '[');
  CHECK(consul.put("/v1/kv/k?acquire=" + first) == "false");
  consul.now += 1ns;
  CHECK(consul.put("/v1/kv/k?acquire=" + first) == "true");
}

TEST_CASE("a transaction takes 64 operations and 524288 bytes") {
  Consul consul;
  std::string ops = R"({"KV":{"Verb":"get-tree","Key":"x"}})";
  const std::string op = ops;
  for (int i = 1; i < 64; ++i) ops += ',' + op;
  CHECK(consul.ask("PUT", "/v1/txn", '[' + ops + ']').status == 200);
  const auto answer = consul.ask("PUT", "/v1/txn", '[' + ops + ',' + op + ']');
  CHECK(answer.status == 413);
  CHECK(answer.body == "Transaction contains too many operations (65 > 64)");
  CHECK(consul.ask("PUT", "/v1/kv/k", std::string(524'288, 'x')).status == 200);
  CHECK(consul.ask("PUT", "/v1/kv/k", std::string(524'289, 'x')).status == 413);
}

TEST_CASE("a deletion wakes a watch of the prefix, other writes do not; its tombstone is reaped") {
  Consul consul;
  consul.put("/v1/kv/t/a", "1");
  consul.put("/v1/kv/t/b", "1");
  const std::uint64_t index = consul.ask("GET", "/v1/kv/t/?keys").consul_index;
  const std::string query = "/v1/kv/t/?keys&index=" + std::to_string(index);
  consul.put("/v1/kv/u", "1");
  CHECK(consul.waits(query));
  consul.ask("DELETE", "/v1/kv/t/b");
  CHECK_FALSE(consul.waits(query));
  CHECK(consul.ask("GET", "/v1/kv/t/?keys").consul_index > index);
  consul.now += 15min;  // the index goes backwards
  CHECK(consul.ask("GET", "/v1/kv/t/?keys").consul_index == consul.index_of("t/a"));
}

TEST_CASE("an index of the future waits on, whatever is written") {
  Consul consul;
  consul.put("/v1/kv/k", "1");
  CHECK(consul.waits("/v1/kv/k?index=900000"));
  consul.put("/v1/kv/k", "2");
  CHECK(consul.waits("/v1/kv/k?index=900000"));
}

TEST_CASE("a wait is bounded, and 300 s if none is given") {
  const auto wait_of = [](const std::string& query) {
    http::Request request;
    request.target = "/v1/kv/k" + query;
    return blocking_wait(request);
  };
  CHECK_FALSE(wait_of("").has_value());
  CHECK_FALSE(wait_of("?index=0&wait=5s").has_value());
  CHECK(wait_of("?index=7") == Duration{300s});
  CHECK(wait_of("?index=7&wait=0s") == Duration{300s});
  CHECK(wait_of("?index=7&wait=55s") == Duration{55s});
  CHECK(wait_of("?index=7&wait=20m") == Duration{600s});
}

TEST_CASE("the same seed and the same requests give the same answers") {
  const auto story = [] {
    Consul consul{7};
    std::string text = consul.session();
    consul.now += 11s;
    text += consul.session();
    consul.now += 5s;
    return text + consul.ask("GET", "/v1/session/list").body;
  };
  CHECK(story() == story());
}

TEST_CASE("a service and its check are accepted, and serfHealth is the only check there is") {
  Consul consul;
  const std::string body =
      R"({"Name":"lictor","ID":"l-1","Tags":["leader"],"Check":{"CheckID":"l-1","TTL":"30s"}})";
  CHECK(consul.ask("PUT", "/v1/agent/service/register", body).status == 200);
  CHECK(consul.ask("PUT", "/v1/agent/check/pass/l-1").status == 200);
  CHECK(consul.ask("PUT", "/v1/agent/service/deregister/l-1").status == 200);
  const auto fault = [&](const std::string& checks) {
    const auto answer = consul.ask("PUT", "/v1/session/create", R"({"NodeChecks":)" + checks + '}');
    return answer.status == 200 ? "" : answer.body;
  };
  CHECK(fault("[]").empty());
  CHECK(fault(R"(["serfHealth"])").empty());
  CHECK(fault(R"(["serfHealth","l-1"])") == "Missing check 'l-1' registration");
}

TEST_CASE("a query that waits for a missing key is woken when it is written") {
  Consul consul;
  consul.put("/v1/kv/t/a", "1");
  const std::string query =
      "/v1/kv/t/none?index=" + std::to_string(consul.ask("GET", "/v1/kv/t/none").consul_index);
  CHECK(consul.waits(query));
  consul.put("/v1/kv/t/none", "2");
  CHECK_FALSE(consul.waits(query));
}

TEST_CASE("no body is nested too deeply for the stack") {
  Consul consul;
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  CHECK(consul.ask("PUT", "/v1/txn", deep.substr(900'000, 200'000)).status == 400);
  CHECK(consul.ask("PUT", "/v1/session/create", R"({"X":)" + deep + "}").status == 200);
}

}  // namespace
}  // namespace lictor::dev
