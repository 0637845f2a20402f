#pragma once

// Consul's answers, word for word as 1.8.7 gives them (consul.md 1 to 3, 6 and 7).

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/http.h"

namespace lictor::unit {

inline http::Response reply(int status, std::string body = {}, std::uint64_t index = 0) {
  http::Response response;
  response.delivery = http::Delivery::kReplied;
  response.status = status;
  response.body = std::move(body);
  response.consul_index = index;
  response.endpoint = "http://consul";
  return response;
}

inline http::Response undelivered(http::Delivery delivery, std::string error = "reset") {
  http::Response response;
  response.delivery = delivery;
  response.error = std::move(error);
  return response;
}

inline std::string entry(const std::string& key, const std::string& value, std::uint64_t modify,
                         const std::string& session = {}, std::uint64_t create = 5) {
  return R"({"LockIndex":0,"Key":")" + key + R"(","Flags":5,"Value":")" + base64_encode(value) +
         '"' + (session.empty() ? "" : R"(,"Session":")" + session + '"') + R"(,"CreateIndex":)" +
         std::to_string(create) + R"(,"ModifyIndex":)" + std::to_string(modify) + "}";
}

inline std::string list_of(const std::vector<std::string>& items) {
  std::string list;
  for (const std::string& each : items) list += (list.empty() ? "" : ",") + each;
  return "[" + list + "]";
}

/// The answer to a read of keys.
inline http::Response found(const std::vector<std::string>& entries, std::uint64_t index = 21) {
  return reply(200, list_of(entries), index);
}

/// The answer to a transaction that was applied.
inline http::Response applied(std::vector<std::string> entries) {
  for (std::string& each : entries) each = R"({"KV":)" + each + "}";
  return reply(200, R"({"Results":)" + list_of(entries) + R"(,"Errors":null})");
}

/// The answer to a transaction in which these operations failed.
inline http::Response failed(const std::vector<std::pair<std::string, std::size_t>>& errors) {
  std::vector<std::string> list;
  for (const auto& [text, op] : errors) {
    list.push_back(R"({"OpIndex":)" + std::to_string(op) + R"(,"What":")" + text + R"("})");
  }
  return reply(409, R"({"Results":null,"Errors":)" + list_of(list) + "}");
}

inline http::Response failed(const std::string& text, std::size_t op = 0) {
  return failed({{text, op}});
}

}  // namespace lictor::unit
