// The model of Consul (src/dev) held against a real agent: what lictor asks of the agent itself,
// and the statuses and headers of the HTTP API.

#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "consul_agent.h"
#include "dev/answer.h"
#include "dev/model.h"
#include "net/transport.h"
#include "same_answers.h"
#include "support.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

// What is the agent's own, or grows with the version.
void forget_what_differs(json& value) {
  if (value.is_array()) {
    for (json& item : value) forget_what_differs(item);
  }
  if (!value.is_object()) return;
  if (value.contains("ModifyIndex")) value.erase("ModifyIndex");
  if (value.contains("CreateIndex")) value.erase("CreateIndex");
  if (value.value("ID", "").size() == 36) value.erase("ID");  // of the node
  for (const auto& [name, item] : value.items()) forget_what_differs(item);
}

class Pair {
 public:
  explicit Pair(const ConsulAgent& consul) : node_(consul.node()), model({1, consul.node()}) {
    net::Options options;
    options.addresses = {consul.address()};
    auto agent = net::Transport::open(options);
    REQUIRE(agent);
    agent_ = std::move(*agent);
  }

  // `retried`: the agent brings into the catalog what it is told within a moment.
  void ask(const std::string& method, const std::string& target, const std::string& body = {},
           bool retried = false) {
    const http::Response said = *model.handle(now, request_of(method, target, body), true);
    http::Response real;
    const auto same = [&] {
      real = agent_->perform(request_of(method, target, body));
      return real.status == said.status && real.known_leader == said.known_leader &&
             (real.consul_index == 0) == (said.consul_index == 0) &&
             (said.status == 400 || same_body(real.body, said.body));
    };
    const bool all_same = retried ? eventually(same) : same();
    INFO(method << ' ' << target << ' ' << body << "\n  agent: " << real.status << ' ' << real.body
                << "\n  model: " << said.status << ' ' << said.body);
    CHECK(all_same);
  }

 private:
  [[nodiscard]] static bool same_body(const std::string& real, const std::string& said) {
    json a = json::parse(real, nullptr, false);
    json b = json::parse(said, nullptr, false);
    if (a.is_discarded() || b.is_discarded()) return real == said;
    forget_what_differs(a);
    forget_what_differs(b);
    return a == b;
  }

  std::string node_;
  std::unique_ptr<net::Transport> agent_;

 public:
  dev::Model model;
  Instant now{std::chrono::hours{1}};
};

TEST_CASE("services and their checks are registered as with a Consul agent") {
  const ConsulAgent consul;
  Pair pair{consul};
  const auto bind_sessions = [&](const std::string& moment) {
    CAPTURE(moment);
    for (const char* check : {"service:w1", "mine", "service:many:1", "service:bare"}) {
      pair.ask("PUT", "/v1/session/create", json{{"Checks", {check}}}.dump(), true);
    }
  };
  bind_sessions("nothing is registered");

  const std::string web =
      R"({"Name":"web","ID":"w1","Tags":["a","b"],"Port":80,"Address":"10.0.0.1",)"
      R"("Meta":{"x":"y"},"Check":{"TTL":"1h"}})";
  pair.ask("PUT", "/v1/agent/service/register", web);
  pair.ask("PUT", "/v1/agent/service/register",
           R"({"Name":"web","ID":"w2","Check":{"TTL":"1h","Status":"passing","CheckID":"mine"}})");
  pair.ask("PUT", "/v1/agent/service/register",
           R"({"Name":"many","Checks":[{"TTL":"1h"},{"TTL":"1h","Notes":"n","Name":"second"}]})");
  pair.ask("PUT", "/v1/agent/service/register", R"({"Name":"bare"})");
  bind_sessions("registered");

  pair.ask("PUT", "/v1/agent/check/pass/service:w1");
  pair.ask("PUT", "/v1/agent/service/register", web);
  bind_sessions("passed, and registered again");

  pair.ask("PUT", "/v1/agent/service/deregister/w2");
  pair.ask("PUT", "/v1/agent/service/deregister/none");
  bind_sessions("one is gone");

  for (const auto& [target, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/agent/service/register", R"({"ID":"x"})"},
           {"/v1/agent/service/register", R"({"Name":"x","Check":{"Name":"no kind"}})"},
           {"/v1/agent/service/register", ""},
           {"/v1/agent/service/register", "x"},
           {"/v1/agent/check/pass/none", ""}}) {
    pair.ask("PUT", target, body);
  }
  for (const char* target : {"/v1/acl/tokens", "/v1/session/node/", "/v1/none"}) {
    pair.ask("GET", target, {}, true);
  }
}

struct Exchange {
  long status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// The bare HTTP, as every program sees it.
Exchange fetch(const std::string& address, const std::string& method, const std::string& target) {
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

TEST_CASE("statuses and headers are those of a Consul") {
  const ConsulAgent consul;
  Pair pair{consul};
  pair.ask("PUT", "/v1/kv/up", "yes");
  for (const auto& [method, target] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/v1/kv/up"},
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
                                                        {"OPTIONS", "/v1/kv/up"},
                                                        {"OPTIONS", "/v1/txn"},
                                                        {"OPTIONS", "/v1/agent/check/pass/x"},
                                                        {"POST", "/v1/kv/up"},
                                                        {"PATCH", "/v1/kv/up"},
                                                        {"GET", "/v1/session/create"},
                                                        {"POST", "/v1/session/create"},
                                                        {"GET", "/v1/session/info/short"},
                                                        {"GET", "/v1/session/list?pretty"},
                                                        {"GET", "/v1/none"}}) {
    const Exchange real = fetch(consul.address(), method, target);
    const http::Request request = request_of(method, target);
    const http::Response said = *pair.model.handle(pair.now, request, true);
    INFO(method << ' ' << target << "\n  agent: " << real.status << ' ' << real.body
                << "\n  model: " << said.status << ' ' << said.body);
    CHECK(real.status == said.status);
    const bool indexed = real.body.find("ModifyIndex") != std::string::npos;
    if (method != "HEAD" && !indexed) {
      CHECK(real.body == said.body);
    }
    std::map<std::string, std::string> theirs(real.headers.begin(), real.headers.end());
    for (const char* of_transfer : {"date", "content-length"}) theirs.erase(of_transfer);
    theirs.erase("x-consul-effective-consistency");  // since 1.8.1, and told by a part of it only
    std::map<std::string, std::string> ours;
    for (auto [name, value] : dev::headers_of(request, said)) {
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      ours[name] = value;
    }
    for (auto* side : {&theirs, &ours}) {
      if (side->contains("x-consul-index")) (*side)["x-consul-index"] = "some";
    }
    CHECK(json(ours).dump() == json(theirs).dump());
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace lictor::live
