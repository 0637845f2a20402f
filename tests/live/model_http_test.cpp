// The model of Consul (src/dev) compared with a real agent: requests to the agent itself, and the
// statuses and headers of the HTTP API.

#include <doctest/doctest.h>

#include "consul_agent.h"
#include "dev/answer.h"
#include "dev/model.h"
#include "kv.h"
#include "same_answers.h"
#include "support.h"

namespace lictor::live {
namespace {

TEST_CASE("statuses and headers are those of a Consul, which takes a service, too") {
  struct Asked {
    std::string method, target, body{};
  };
  const Asked asked[] = {{"PUT", "/v1/kv/up", "yes"},
                         {"PUT", "/v1/agent/service/register",
                          R"({"Name":"web","ID":"w1","Check":{"TTL":"1h","Status":"passing"}})"},
                         {"PUT", "/v1/agent/check/pass/service:w1"},
                         {"PUT", "/v1/agent/service/deregister/w1"},
                         {"GET", "/v1/acl/tokens"},
                         {"GET", "/v1/kv/up"},
                         {"GET", "/v1/kv/up?pretty"},
                         {"GET", "/v1/kv/up?raw"},
                         {"GET", "/v1/kv/up?raw&recurse"},
                         {"GET", "/v1/kv/up?keys&recurse"},
                         {"GET", "/v1/kv/up?stale"},
                         {"GET", "/v1/kv/up?dc=dc1&token=any"},
                         {"GET", "/v1/kv/none"},
                         {"GET", "/v1/kv/none?raw"},
                         {"HEAD", "/v1/kv/up"},
                         {"HEAD", "/v1/agent/self"},
                         {"POST", "/v1/kv/up"},
                         {"PATCH", "/v1/kv/up"},
                         {"GET", "/v1/session/create"},
                         {"POST", "/v1/session/create"},
                         {"GET", "/v1/session/info/short"},
                         {"GET", "/v1/session/list?pretty"}};
  const ConsulAgent consul;
  Kv agent{consul.address()};
  dev::Model model{{1, consul.node()}};
  for (const auto& [method, target, body] : asked) {
    const HttpAnswer real = agent.request(method, target, body);
    REQUIRE(real.status != 0);
    const http::Request request = request_of(method, target, body);
    http::Response said = *model.handle(Instant{std::chrono::hours{1}}, request, true);
    http::Response answer;
    answer.status = real.status;
    answer.body = real.body;
    for (const auto& [name, value] : real.headers) {
      if (name == "x-consul-index") answer.consul_index = std::stoull(value);
      if (name == "x-consul-knownleader") answer.known_leader = value == "true";
    }
    take_out_known(target, answer, said);
    INFO(method << ' ' << target << "\n  agent: " << real.status << ' ' << real.body
                << "\n  model: " << said.status << ' ' << said.body);
    CHECK(answer.status == said.status);
    const bool indexed = contains(real.body, "ModifyIndex");
    if (method != "HEAD" && !indexed) CHECK(answer.body == said.body);
    std::map<std::string, std::string> theirs = real.headers;
    for (const char* left_out : {"date", "content-length", "allow", "vary"}) theirs.erase(left_out);
    theirs.erase("x-consul-effective-consistency");  // since 1.8.1, and sent by a part of it only
    std::map<std::string, std::string> ours;
    for (const auto& [name, value] : dev::headers_of(request, said)) ours[lower(name)] = value;
    for (auto* side : {&theirs, &ours}) {
      if (side->contains("x-consul-index")) (*side)["x-consul-index"] = "some";
    }
    take_out_known(theirs, ours);
    // The part that was taken out of the answer has no header either.
    if (answer.body.empty() && !real.body.empty()) theirs.erase("content-type");
    if (answer.consul_index == 0) theirs.erase("x-consul-index");
    CHECK(json(ours).dump() == json(theirs).dump());
  }
  const std::string differences = differences_seen();
  if (!differences.empty()) MESSAGE("not as 1.8.7, as is known:\n" << differences);
}

}  // namespace
}  // namespace lictor::live
