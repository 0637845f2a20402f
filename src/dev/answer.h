#pragma once

// The answers of the handlers, and what all endpoints have in common: methods and headers.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http.h"
#include "base/random.h"
#include "dev/go_text.h"
#include "dev/state.h"

namespace lictor::dev {

[[nodiscard]] inline http::Response answer(int status, std::string body = {}) {
  http::Response response;
  response.delivery = http::Delivery::kReplied;
  response.status = status;
  response.body = std::move(body);
  return response;
}

/// Of a read: with the headers that a blocking query needs.
[[nodiscard]] inline http::Response read_answer(int status, std::uint64_t index,
                                                std::string body = {}) {
  http::Response response = answer(status, std::move(body));
  response.consul_index = index;
  response.known_leader = true;
  return response;
}

[[nodiscard]] inline std::string uuid(Random& random) {
  const std::string hex = random.hex() + random.hex();
  return hex.substr(0, 8) + '-' + hex.substr(8, 4) + '-' + hex.substr(12, 4) + '-' +
         hex.substr(16, 4) + '-' + hex.substr(20, 12);
}

[[nodiscard]] inline http::Response method_not_allowed(const http::Request& request) {
  return answer(405, "method " + request.method + " not allowed");
}

/// As the API shows a key; without its value in a transaction's answer to a write.
void append_record(std::string& out, const KvRecord& record, bool with_value = true);

/// As in an Allow header, without OPTIONS ("GET,PUT,DELETE"); empty: there is no such endpoint.
[[nodiscard]] std::string_view allowed_methods(std::string_view path);

/// Says of an endpoint that Consul has and this model lacks what to do; otherwise empty.
[[nodiscard]] std::string missing_here(std::string_view path);

/// The headers of Model's answer, those of the transfer aside.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(
    const http::Request& request, const http::Response& response);

}  // namespace lictor::dev
