#pragma once

// The agent's and the catalog's endpoints, as far as lictor and common clients use them: one node,
// the services registered at its agent, and a check of each. Checks do not expire, nodes cannot be
// registered, and reads do not block.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/http.h"

namespace lictor::dev {

class Catalog {
 public:
  explicit Catalog(std::string node) : node_(std::move(node)) {}

  /// Nothing when it is no endpoint of these. `index` is that of the log.
  [[nodiscard]] std::optional<http::Response> handle(const http::Request& request,
                                                     const std::string& path, std::uint64_t index);

 private:
  struct Service {
    std::string id, name, address;
    std::string tags = "[]";  // JSON
    std::string meta = "{}";  // JSON
    std::int64_t port = 0;
    std::string check_id;  // empty: it has none
    std::string check_name, status, output;
  };

  [[nodiscard]] http::Response agent(const http::Request& request, const std::string& path);
  [[nodiscard]] http::Response register_service(const std::string& body);
  [[nodiscard]] http::Response set_check(const std::string& id, std::string status,
                                         std::string output);
  [[nodiscard]] http::Response read(const http::Request& request, const std::string& path) const;

  std::string node_;
  std::map<std::string, Service> services_;  // by id
};

}  // namespace lictor::dev
