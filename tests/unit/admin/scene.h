#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../cli/model_consul.h"
#include "admin/activity.h"
#include "admin/events.h"
#include "admin/metrics.h"
#include "admin/routes.h"
#include "client/client.h"
#include "fake_backend.h"
#include "fake_exchange.h"
#include "unit/json_members.h"

namespace lictor::admin {

/// The ids of the tasks on a page.
inline std::vector<std::string> ids_of(const nlohmann::json& page) {
  std::vector<std::string> ids;
  for (const auto& task : page.at("tasks")) ids.push_back(task.at("id"));
  return ids;
}

struct Holder {
  std::string node, since;
};
/// Locks of partitions with these holders; free if `node` is empty, `hidden`: may not be read.
inline client::Locks locks_of(const std::vector<Holder>& holders, bool hidden = false) {
  std::vector<std::optional<wire::KvEntry>> entries;
  for (const auto& [node, since] : holders) {
    const nlohmann::json value{{"node", node}, {"since", since}};
    const wire::KvEntry entry{"key", value.dump(), "session of " + node};
    entries.push_back(node.empty() ? std::nullopt : std::optional{entry});
  }
  return client::Locks{entries, hidden};
}

/// All routes of a daemon that leads queue "q", over the model of Consul.
struct Scene {
  Scene() {
    queues.push_back({client, impl->queue});
    known_status();
    router.emplace(Guard{{{}, {}, [this] { return token; }}});
    add_status_routes(*router, backend);
    add_metrics_route(*router, backend, metrics);
    add_event_route(*router, events, queues);
    add_log_routes(*router, backend, logs);
    add_queue_routes(*router, backend, queues, activity);
    add_task_routes(*router, queues);
    add_change_routes(*router, queues);
    add_page_routes(*router);
    consul.put("lictor/q/leader", R"({"node":"a","instance":"i"})", session);
  }

  void known_status() {
    backend.known->node = "a";
    backend.known->version = "1";
    QueueStatus queue{.name = "q",
                      .role = QueueStatus::Role::kLeading,
                      .gauges = {{"lease_left", 20}},
                      .states = {{"ready", 3}, {"no executor", 1}},
                      .types = {"Mail", "*"}};
    backend.known->queues = {queue};
    cluster::Member peer{.node = "a", .leads = true, .partitions = {0}, .answers = true};
    backend.members.locks = locks_of({{"a", "2026-01-01T00:00:00Z"}});
    backend.members.members = {peer};
  }

  Response get(const std::string& target) { return ask(*router, make_request("GET", target)); }
  nlohmann::json read(const std::string& target) {
    const Response response = get(target);
    CAPTURE(target);
    REQUIRE_MESSAGE(response.status == 200, response.body);
    return nlohmann::json::parse(response.body);
  }
  nlohmann::json queue() { return read("/v1/queues")["queues"][0]; }
  // The findings about the queue, a line each; each with a remedy.
  std::string findings() {
    std::string text;
    const nlohmann::json told = queue();
    for (const auto& each : told["findings"]) {
      CHECK_FALSE(each["remedy"].get<std::string>().empty());
      text += each["what"].get<std::string>() + '\n';
    }
    return text;
  }
  // The findings of one kind.
  std::vector<nlohmann::json> findings_of(const std::string& kind) {
    std::vector<nlohmann::json> found;
    const nlohmann::json told = queue();
    for (const auto& each : told["findings"]) {
      if (each["kind"] == kind) found.push_back(each);
    }
    return found;
  }
  Response post(const std::string& target, const std::string& body = {}) {
    Request request = make_request("POST", target);
    request.body = body;
    return ask(*router, request);
  }
  void task(const std::string& id, const std::string& record) {
    consul.put("lictor/q/tasks/" + id, record);
  }
  void schedule(const std::string& name, const std::string& record) {
    consul.put("lictor/q/schedules/" + name, record);
  }
  void letter(const std::string& id, const std::string& type, const std::string& error,
              const std::string& at = "2026-01-01T00:00:00Z") {
    consul.put("lictor/q/dead/" + id, nlohmann::json{{"record", {{"taskType", type}}},
                                                     {"reason", "failed"},
                                                     {"error", error},
                                                     {"attempts", 3},
                                                     {"at", at},
                                                     {"node", "a"}}
                                          .dump());
  }

  cli::test::ModelConsul consul;
  std::string session = consul.session();
  std::unique_ptr<Client::Impl> impl =
      std::make_unique<Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"));
  Client client{std::make_unique<Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"))};
  StoredQueues queues;
  FakeBackend backend;
  Metrics metrics;
  Events events;
  Activity activity;
  LogStore logs{"/nonexistent", std::make_shared<exec::ActiveLogs>(), "a"};
  std::string token;
  std::optional<Router> router;
};

}  // namespace lictor::admin
