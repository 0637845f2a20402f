#pragma once

// What lictor asks of the Consul agent itself: it registers a service with a TTL check, and reads
// the agent's name and version. Nothing else of the catalog is modelled.
//
//   TTL check: as registered -> passing (pass) -> critical (its TTL has passed)

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "lictor/time.h"

namespace lictor::dev {

class Agent {
 public:
  Agent(std::string node, std::uint64_t seed);

  [[nodiscard]] static bool has_path(std::string_view path);
  /// Answers a request whose path and method allowed_methods() knows.
  [[nodiscard]] http::Response handle(const http::Request& request, std::string_view path,
                                      Instant now);

  /// Why no session can be bound to these checks, in Consul's words; empty: one can.
  [[nodiscard]] std::string session_fault(const std::string& node,
                                          const std::vector<std::string>& checks,
                                          Instant now) const;

 private:
  struct Check {
    std::string status, service;
    Duration ttl{};
    Instant expires = Instant::max();
  };
  [[nodiscard]] http::Response register_service(const http::Request& request, Instant now);
  [[nodiscard]] http::Response pass(const std::string& id, Instant now);
  [[nodiscard]] std::string self() const;

  const std::string node_, id_;
  std::map<std::string, Check> checks_;
};

}  // namespace lictor::dev
