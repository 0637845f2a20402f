#pragma once

// What lictor asks of the Consul agent itself: that it registers a service with a check by TTL, and
// tells its name and version. Nothing else of the catalog is modelled.
//
//   check by TTL: as registered -> passing (pass) -> critical (its TTL is over)

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/http.h"
#include "dev/go_text.h"
#include "lictor/time.h"

namespace lictor::dev {

class Agent {
 public:
  Agent(std::string node, std::uint64_t seed);

  [[nodiscard]] static bool has_path(const std::string& path);
  /// Answers a request whose path and method allowed_methods() knows.
  [[nodiscard]] http::Response handle(const http::Request& request, const Url& url, Instant now);

  /// Why no session can be bound to these, in Consul's words; empty: one can.
  [[nodiscard]] std::string session_fault(const std::string& node,
                                          const std::vector<std::string>& checks,
                                          Instant now) const;

 private:
  struct Check {
    std::string id, name, status, notes, service;
    Duration ttl{};
    Instant expires = Instant::max();
  };
  [[nodiscard]] http::Response register_service(const http::Request& request, Instant now);
  [[nodiscard]] http::Response pass(const std::string& id, Instant now);
  void deregister(const std::string& id);
  [[nodiscard]] std::string self() const;
  [[nodiscard]] std::string services() const;
  [[nodiscard]] std::string checks(Instant now) const;

  const std::string node_, id_;
  std::map<std::string, nlohmann::ordered_json> services_;  // as /v1/agent/services shows them
  std::map<std::string, Check> checks_;
};

}  // namespace lictor::dev
