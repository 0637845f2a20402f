#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "lictor/client.h"

namespace lictor::admin {

/// What is wrong with a queue, and the way out, as /v1/queues tells it.
class Findings {
 public:
  /// `kind` is for programs: "no_leader". Each kind is in openapi.json.
  void error(const char* kind, std::string what, std::string remedy);
  void warning(const char* kind, std::string what, std::string remedy);

  void of_fleet(const Fleet& fleet);
  /// `status`: queue_json() of the leader, or null. Its members have the types that queue_json()
  /// gives them.
  void of_queue(const nlohmann::json& status, const std::string& leader, const PauseState& paused);

  /// [{"kind", "severity", "what", "remedy"}, ...]
  [[nodiscard]] nlohmann::ordered_json take() { return std::move(list_); }

 private:
  void add(const char* kind, const char* severity, std::string&& what, std::string&& remedy);

  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

}  // namespace lictor::admin
