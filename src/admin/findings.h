#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/leaders.h"
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
  /// `leaders`: those that have told their status. Its members have the types that queue_json() gives
  /// them.
  void of_queue(const std::vector<LeaderStatus>& leaders, const PauseState& paused);

  /// [{"kind", "severity", "what", "remedy"}, ...]
  [[nodiscard]] nlohmann::ordered_json take() { return std::move(list_); }

 private:
  void of_leads(const Fleet& fleet);
  void of_wishes(const Fleet& fleet);
  void of_peer(const Peer& peer, const Fleet& fleet);
  void of_host(const LeaderStatus& leader);
  void of_tasks(const std::vector<LeaderStatus>& leaders);
  void of_due(const std::vector<LeaderStatus>& leaders);
  void add(const char* kind, const char* severity, std::string&& what, std::string&& remedy);

  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

}  // namespace lictor::admin
