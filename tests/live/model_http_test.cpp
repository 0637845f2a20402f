// The model of Consul (src/dev) compared with a real agent: requests to the agent itself, and the
// statuses and headers of the HTTP API.

#include <cctype>
#include <utility>

#include <curl/curl.h>
#include <doctest/doctest.h>

#include "consul_agent.h"
#include "dev/answer.h"
#include "dev/model.h"
#include "same_answers.h"
#include "support.h"

namespace lictor::live {
namespace {

struct Exchange {
  long status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The bare HTTP, as every program sees it.
Exchange fetch(const std::string& address, const std::string& method, const std::string& target,
               const std::string& body) {
  CURL* curl = curl_easy_init();
  Exchange exchange;
  const auto write = +[](char* bytes, std::size_t size, std::size_t n, void* out) {
    static_cast<std::string*>(out)->append(bytes, size * n);
    return size * n;
  };
  std::string headers;
  curl_easy_setopt(curl, CURLOPT_URL, (address + target).c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  if (method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (!body.empty()) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange.body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, write);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &headers);
  REQUIRE(curl_easy_perform(curl) == CURLE_OK);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &exchange.status);
  curl_easy_cleanup(curl);
  for (std::size_t at = headers.find("\r\n"); at + 4 < headers.size();) {
    const std::size_t end = headers.find("\r\n", at + 2);
    const std::string line = headers.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (colon != std::string::npos) exchange.headers.emplace_back(name, line.substr(colon + 2));
    at = end;
  }
  return exchange;
}

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
  dev::Model model{{1, consul.node()}};
  for (const auto& [method, target, body] : asked) {
    const Exchange real = fetch(consul.address(), method, target, body);
    const http::Request request = request_of(method, target, body);
    http::Response said = *model.handle(Instant{std::chrono::hours{1}}, request, true);
    http::Response answer;
    answer.status = static_cast<int>(real.status);
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
    std::map<std::string, std::string> theirs(real.headers.begin(), real.headers.end());
    for (const char* left_out : {"date", "content-length", "allow", "vary"}) theirs.erase(left_out);
    theirs.erase("x-consul-effective-consistency");  // since 1.8.1, and sent by a part of it only
    std::map<std::string, std::string> ours;
    for (auto [name, value] : dev::headers_of(request, said)) {
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      ours[name] = value;
    }
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
