// The model of Consul (src/dev) held against a real agent in what `lictor dev` tells other
// programs: nodes, services, checks, and the answers and headers of the HTTP API as such.

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
#include "dev/headers.h"
#include "dev/model.h"
#include "net/transport.h"
#include "support.h"

namespace lictor::live {
namespace {

using nlohmann::json;

TEST_SUITE_BEGIN("live");

http::Request request_of(std::string method, std::string target, std::string body = {}) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  request.timeout = patience();
  return request;
}

// What is the agent's own, or grows with the version.
void forget_what_differs(json& value) {
  if (value.is_array()) {
    for (json& item : value) forget_what_differs(item);
  }
  if (!value.is_object()) return;
  if (value.contains("ModifyIndex")) value.erase("ModifyIndex");
  if (value.contains("CreateIndex")) value.erase("CreateIndex");
  if (value.value("ID", "").size() == 36) value.erase("ID");  // of the node
  if (value.value("Service", json()) == "consul") value = "the agent's own service";
  if (value.contains("ServiceName") && value["ServiceName"] == "consul") {
    value = "the agent's own service";
  }
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

  // The agent brings into the catalog what it is told within a moment, so a read is asked again.
  void ask(const std::string& method, const std::string& target, const std::string& body = {}) {
    const http::Response said = *model.handle(now, request_of(method, target, body), true);
    http::Response real;
    const auto same = [&] {
      real = agent_->perform(request_of(method, target, body));
      return real.status == said.status && real.known_leader == said.known_leader &&
             (real.consul_index == 0) == (said.consul_index == 0) &&
             same_body(real.body, said.body);
    };
    const bool all_same = method == "GET" ? eventually(same) : same();
    INFO(method << ' ' << target << ' ' << body << "\n  agent: " << real.status << ' ' << real.body
                << "\n  model: " << said.status << ' ' << said.body);
    CHECK(all_same);
  }

  std::pair<http::Response, http::Response> ask_both(const std::string& method,
                                                     const std::string& target,
                                                     const std::string& body = {}) {
    return {agent_->perform(request_of(method, target, body)),
            *model.handle(now, request_of(method, target, body), true)};
  }
  // How many there are at each.
  std::pair<std::size_t, std::size_t> sessions() {
    const auto [real, said] = ask_both("GET", "/v1/session/list");
    return {json::parse(real.body).size(), json::parse(said.body).size()};
  }
  void expire_checks() {
    now = model.next_deadline();
    model.advance(now);
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

const std::vector<std::string> kReads{"/v1/agent/services",
                                      "/v1/agent/checks",
                                      "/v1/catalog/datacenters",
                                      "/v1/catalog/nodes",
                                      "/v1/catalog/services",
                                      "/v1/catalog/service/web",
                                      "/v1/catalog/service/db",
                                      "/v1/catalog/service/web?tag=a",
                                      "/v1/catalog/service/none",
                                      "/v1/catalog/node/none",
                                      "/v1/catalog/node/ext",
                                      "/v1/catalog/node-services/ext",
                                      "/v1/health/service/web",
                                      "/v1/health/service/web?passing",
                                      "/v1/health/service/web?passing=false",
                                      "/v1/health/service/web?tag=z",
                                      "/v1/health/service/db",
                                      "/v1/health/checks/web",
                                      "/v1/health/state/any",
                                      "/v1/health/state/critical",
                                      "/v1/health/node/ext",
                                      "/v1/health/node/none",
                                      "/v1/agent/service/w1",
                                      "/v1/agent/service/none"};

TEST_CASE("nodes, services and checks are told as a Consul tells them") {
  const ConsulAgent consul;
  Pair pair{consul};
  const auto read_all = [&](const std::string& moment) {
    CAPTURE(moment);
    for (const std::string& target : kReads) {
      if (target != "/v1/agent/service/w1") pair.ask("GET", target);  // it has a hash besides
    }
    pair.ask("GET", "/v1/catalog/node/" + consul.node());
    pair.ask("GET", "/v1/health/node/" + consul.node());
  };
  read_all("nothing is registered");

  pair.ask("PUT", "/v1/agent/service/register",
           R"({"Name":"web","ID":"w1","Tags":["a","b"],"Port":80,"Address":"10.0.0.1",)"
           R"("Meta":{"x":"y"},"Check":{"TTL":"1h"}})");
  pair.ask("PUT", "/v1/agent/service/register",
           R"({"Name":"web","ID":"w2","Check":{"TTL":"1h","Status":"passing","CheckID":"mine"}})");
  pair.ask("PUT", "/v1/agent/service/register",
           R"({"Name":"many","Checks":[{"TTL":"1h"},{"TTL":"1h","Notes":"n","Name":"second"}]})");
  pair.ask("PUT", "/v1/agent/check/register", R"({"Name":"mem","TTL":"1h","Status":"passing"})");
  pair.ask("PUT", "/v1/agent/check/register",
           R"({"ID":"c2","Name":"second","TTL":"1h","ServiceID":"w1","Notes":"n"})");
  read_all("registered at the agent");

  pair.ask("PUT", "/v1/agent/check/pass/service:w1");
  pair.ask("PUT", "/v1/agent/check/pass/c2?note=well");
  pair.ask("PUT", "/v1/agent/check/warn/mine?note=careful");
  pair.ask("PUT", "/v1/agent/check/update/mem", R"({"Status":"passing","Output":"fine"})");
  pair.ask("PUT", "/v1/catalog/register",
           R"({"Node":"ext","Address":"10.1.1.1","Service":{"Service":"db","Port":5432,)"
           R"("Tags":["m"]},"Check":{"CheckID":"db:1","Name":"dbc","Status":"passing",)"
           R"("ServiceID":"db"}})");
  pair.ask("PUT", "/v1/catalog/register",
           R"({"Node":"ext3","Address":"10.1.1.3","NodeMeta":{"k":"v"},)"
           R"("TaggedAddresses":{"lan":"1.2.3.4"},"Checks":[{"Name":"n1"}]})");
  read_all("told of, and registered at the catalog");

  pair.ask("PUT", "/v1/agent/check/fail/service:w1");
  pair.ask("PUT", "/v1/agent/check/deregister/c2");
  pair.ask("PUT", "/v1/agent/service/deregister/w2");
  pair.ask("PUT", "/v1/agent/service/deregister/none");
  pair.ask("PUT", "/v1/agent/check/deregister/none");
  pair.ask("PUT", "/v1/catalog/deregister", R"({"Node":"ext","CheckID":"db:1"})");
  pair.ask("PUT", "/v1/catalog/deregister", R"({"Node":"ext3"})");
  pair.ask("PUT", "/v1/catalog/deregister", R"({"Node":"none"})");
  read_all("a part is gone");
  pair.ask("PUT", "/v1/catalog/deregister", R"({"Node":"ext","ServiceID":"db"})");
  pair.ask("PUT", "/v1/catalog/deregister", R"({"Node":"ext"})");
  read_all("all of it");

  for (const auto& [target, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/agent/service/register", R"({"ID":"x"})"},
           {"/v1/agent/service/register", R"({"Name":"x","Check":{"Name":"no kind"}})"},
           {"/v1/agent/service/register", ""},
           {"/v1/agent/check/register", R"({"TTL":"10s"})"},
           {"/v1/agent/check/register", R"({"Name":"x"})"},
           {"/v1/agent/check/register", R"({"Name":"x","TTL":"abc"})"},
           {"/v1/agent/check/register", R"({"Name":"x","TTL":"9s","ServiceID":"none"})"},
           {"/v1/agent/check/register", R"({"Name":"x","TTL":"9s","Status":"odd"})"},
           {"/v1/agent/check/register", "x"},
           {"/v1/agent/check/pass/none", ""},
           {"/v1/agent/check/update/mem", R"({"Status":"odd"})"},
           {"/v1/catalog/register", R"({"Node":"x"})"},
           {"/v1/catalog/register", R"({"Node":"x","Address":"1.1.1.1","Check":{"Name":"n1",)"
                                    R"("ServiceID":"none"}})"},
           {"/v1/catalog/register", "x"},
           {"/v1/catalog/deregister", "{}"},
           {"/v1/event/fire/", ""}}) {
    pair.ask("PUT", target, body);
  }
  for (const char* target :
       {"/v1/catalog/service/", "/v1/catalog/node/", "/v1/health/node/", "/v1/health/checks/",
        "/v1/health/state/", "/v1/health/service/", "/v1/health/service/web?passing=abc",
        "/v1/catalog/nodes?dc=none", "/v1/catalog/nodes?index=abc", "/v1/catalog/nodes?wait=5",
        "/v1/acl/tokens", "/v1/session/node/", "/v1/none"}) {
    pair.ask("GET", target);
  }
}

TEST_CASE("what an agent is told again, and its maintenance mode, is told as a Consul tells it") {
  const ConsulAgent consul;
  Pair pair{consul};
  const std::string web = R"({"Name":"web","ID":"w1","Port":80,)";
  const std::string expiring = R"("Check":{"TTL":"1h"}})";
  const auto read_all = [&] {
    for (const char* target :
         {"/v1/agent/services", "/v1/agent/checks", "/v1/catalog/service/web",
          "/v1/health/service/web", "/v1/health/state/any", "/v1/agent/health/service/id/w1",
          "/v1/agent/health/service/id/w1?format=text", "/v1/agent/health/service/id/bare",
          "/v1/agent/health/service/id/none", "/v1/agent/health/service/id/none?format=text",
          "/v1/agent/health/service/id/", "/v1/agent/health/service/name/web",
          "/v1/agent/health/service/name/web?format=text", "/v1/agent/health/service/name/none",
          "/v1/agent/health/service/name/none?format=text", "/v1/agent/health/service/name/"}) {
      pair.ask("GET", target);
    }
  };
  read_all();
  pair.ask("PUT", "/v1/agent/service/register",
           web + R"("Weights":{"Passing":5,"Warning":2},"EnableTagOverride":true,)" + expiring);
  pair.ask("PUT", "/v1/agent/service/register", R"({"Name":"bare"})");
  read_all();
  pair.ask("PUT", "/v1/agent/check/warn/service:w1?note=careful");
  read_all();
  pair.ask("PUT", "/v1/agent/service/register", web + expiring);  // stays as it was told last
  pair.ask("PUT", "/v1/agent/check/register",
           R"({"ID":"service:w1","Name":"other","TTL":"1h","ServiceID":"w1"})");
  read_all();
  pair.ask("PUT", "/v1/agent/service/register", web + R"("Tags":["again"]})");
  read_all();
  pair.ask("PUT", "/v1/agent/service/register?replace-existing-checks=true",
           web + R"("Check":{"CheckID":"c","TTL":"1h","Status":"passing"}})");
  read_all();

  pair.ask("PUT", "/v1/agent/maintenance?enable=true");
  pair.ask("PUT", "/v1/agent/maintenance?enable=true&reason=again");
  pair.ask("PUT", "/v1/agent/service/maintenance/w1?enable=true&reason=why");
  // Of several checks an agent tells in any order.
  for (const char* target :
       {"/v1/agent/checks", "/v1/health/service/web", "/v1/agent/health/service/id/bare",
        "/v1/agent/health/service/id/w1?format=text",
        "/v1/agent/health/service/name/web?format=text"}) {
    pair.ask("GET", target);
  }
  pair.ask("PUT", "/v1/agent/service/maintenance/w1?enable=false");
  pair.ask("PUT", "/v1/agent/maintenance?enable=0");
  pair.ask("PUT", "/v1/agent/maintenance?enable=0");
  read_all();
  for (const char* target :
       {"/v1/agent/maintenance", "/v1/agent/maintenance?enable", "/v1/agent/maintenance?enable=x",
        "/v1/agent/service/maintenance/none?enable=true", "/v1/agent/service/maintenance/none",
        "/v1/agent/service/maintenance/?enable=true"}) {
    pair.ask("PUT", target);
  }
  pair.ask("PUT", "/v1/agent/check/register", R"({"Name":"h","HTTP":"http://127.0.0.1:1/"})");
}

TEST_CASE("a check by TTL expires, and takes the sessions bound to it along, as at a Consul") {
  const ConsulAgent consul;
  Pair pair{consul};
  const std::string mem = R"({"Name":"mem","TTL":"6s","Status":"passing"})";
  pair.ask("PUT", "/v1/agent/check/register", mem);
  pair.ask("PUT", "/v1/agent/check/register", R"({"Name":"told","TTL":"6s"})");
  pair.ask("PUT", "/v1/agent/check/update/told", R"({"Status":"passing","Output":"fine"})");
  pair.ask("PUT", "/v1/session/create", R"({"Checks":["mem","none"]})");
  // Expired before the agent has told the catalog of it, the check would bind no session.
  pair.ask("PUT", "/v1/agent/check/register", R"({"Name":"long","TTL":"1h","Status":"passing"})");
  pair.ask("GET", "/v1/health/state/any");
  const auto created = pair.ask_both("PUT", "/v1/session/create", R"({"Checks":["long"]})");
  CHECK(created.first.status == 200);
  CHECK(created.second.status == 200);
  CHECK(pair.sessions() == std::pair<std::size_t, std::size_t>{1, 1});
  pair.ask("PUT", "/v1/agent/check/fail/long");
  CHECK(eventually([&] { return pair.sessions() == std::pair<std::size_t, std::size_t>{0, 0}; }));
  pair.ask("PUT", "/v1/session/create", R"({"Checks":["long"]})");

  pair.expire_checks();
  pair.ask("GET", "/v1/agent/checks");
  pair.ask("GET", "/v1/health/state/critical");
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

TEST_CASE("statuses, headers and redirections are those of a Consul") {
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
                                                        {"GET", "/v1/kv"},
                                                        {"PUT", "/v1/kv"},
                                                        {"GET", "/v1/session/info?index=1&a=%20b"},
                                                        {"GET", "/v1//kv/up"},
                                                        {"GET", "/v1/kv//up?raw&a=1"},
                                                        {"GET", "/v1/kv//a%20b/%C3%A9?raw"},
                                                        {"DELETE", "/v1/kv/a/../up"},
                                                        {"GET", "/v1/kv/./up"},
                                                        {"HEAD", "/v1/kv/up"},
                                                        {"HEAD", "/v1/agent/self"},
                                                        {"OPTIONS", "/v1/kv/up"},
                                                        {"OPTIONS", "/v1/txn"},
                                                        {"OPTIONS", "/v1/agent/check/pass/x"},
                                                        {"POST", "/v1/kv/up"},
                                                        {"PATCH", "/v1/kv/up"},
                                                        {"GET", "/v1/session/create"},
                                                        {"POST", "/v1/session/create"},
                                                        {"GET", "/v1/catalog/register"},
                                                        {"PUT", "/v1/catalog/nodes"},
                                                        {"PUT", "/v1/catalog/services"},
                                                        {"DELETE", "/v1/event/list"},
                                                        {"GET", "/v1/session/info/short"},
                                                        {"GET", "/v1/session/list?pretty"},
                                                        {"GET", "/v1/catalog/services"},
                                                        {"GET", "/v1/health/service/none?pretty"},
                                                        {"GET", "/v1/status/peers?pretty"},
                                                        {"GET", "/v1/catalog/datacenters?pretty"},
                                                        {"GET", "/v1/agent/maintenance"},
                                                        {"PUT", "/v1/agent/health/service/id/x"},
                                                        {"GET", "/v1/none"}}) {
    const Exchange real = fetch(consul.address(), method, target);
    const http::Request request = request_of(method, target);
    const http::Response said = *pair.model.handle(pair.now, request, true);
    INFO(method << ' ' << target << "\n  agent: " << real.status << ' ' << real.body
                << "\n  model: " << said.status << ' ' << said.body);
    CHECK(real.status == said.status);
    const bool indexed = real.body.find("ModifyIndex") != std::string::npos;
    if (method != "HEAD" && !indexed && target.find("peers") == std::string::npos) {
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
