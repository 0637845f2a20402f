// The daemon reports on itself: health, readiness, status, and why a task waits.
//
// /healthz answers as long as the process serves HTTP, so a supervisor that asks it does not
// restart a daemon because Consul is away. /readyz says whether the daemon can work: its loop
// answers, Consul can be used, and the daemon waits for nothing. Both are public, since load
// balancers and probes have no token.
//
// Only the leader of the task's partition answers /v1/tasks/ID/why. Any other daemon hands the
// question on to it, once.

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/time_text.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using nlohmann::ordered_json;

// Part of the API: other versions compare it.
const char* role_text(QueueStatus::Role role) {
  switch (role) {
    case QueueStatus::Role::kFollowing:
      return "following";
    case QueueStatus::Role::kLeading:
      return "leading";
    case QueueStatus::Role::kDraining:
      return "draining";
  }
  return "";
}

// null while unknown: a follower keeps no list, so 0 would be false.
void add_gauge(const Gauge& gauge, const QueueStatus& queue, ordered_json& out) {
  const bool known = gauge.is_known(queue);
  const double value = queue.value(gauge);
  switch (gauge.kind) {
    case Gauge::Kind::kCount:
      out[gauge.field()] = known ? ordered_json(std::llround(value)) : ordered_json{};
      break;
    case Gauge::Kind::kFlag:
      out[gauge.field()] = known ? ordered_json(value != 0) : ordered_json{};
      break;
    case Gauge::Kind::kSeconds:
      if (known) out[gauge.field()] = std::llround(value * 1000);
      break;
    case Gauge::Kind::kCounter:
      break;
    case Gauge::Kind::kByState:
      for (const auto& [state, count] : queue.*gauge.by_state) {
        if (known && count != 0) out[gauge.field()][state] = count;
      }
  }
}

Response text_response(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text) + "\n", {}};
}

Response ready(Backend& backend) {
  const auto status = backend.status();
  if (!status) return text_response(503, kNoAnswer);
  if (status->stopping) {
    return text_response(503, status->waits_for.empty() ? "stopping" : status->waits_for);
  }
  if (const ConsulTrouble trouble = backend.consul_trouble(); trouble.any()) {
    return text_response(503, trouble.what);
  }
  if (!status->waits_for.empty()) return text_response(503, status->waits_for);
  return text_response(200, "ready");
}

Response status_response(Backend& backend) {
  const auto status = backend.status();
  if (!status) return error_response(503, kNoAnswer);
  ordered_json queues = ordered_json::array();
  for (const QueueStatus& queue : status->queues) queues.push_back(queue_json(queue));
  const auto uptime = std::chrono::floor<std::chrono::seconds>(status->uptime);
  const ordered_json out{
      {"node", status->node},
      {"version", status->version},
      {"pid", status->pid},
      {"since", format_rfc3339(status->since)},
      {"uptime_seconds", uptime.count()},
      {"stopping", status->stopping},
      {"waits_for", status->waits_for.empty() ? ordered_json{} : ordered_json(status->waits_for)},
      {"consul", consul_json(backend.consul_trouble())},
      {"queues", std::move(queues)}};
  return json_response(200, out, 2);
}

Response why_response(Backend& backend, const Call& call) {
  const std::string queue = call.request.parameter("queue").value_or("default");
  const std::string id{call.wildcard};
  if (auto why = backend.why(queue, id))
    return Response{200, "application/json", *std::move(why) + '\n', {}};
  // While leadership changes, two daemons may each take the other for the leader: ask only once.
  const bool relayed = call.request.parameter("relayed").has_value();
  auto asked = relayed
                   ? fail(ErrorCode::kFailed, "its leadership is just changing; ask again")
                   : backend.ask_leader_of(queue, id,
                                           "/v1/tasks/" + wire::query_value(id) +
                                               "/why?relayed=1&queue=" + wire::query_value(queue));
  if (asked) return Response{200, "application/json", *std::move(asked), {}};
  return error_response(
      404, "this daemon does not lead the task's queue or partition; " + asked.error().message);
}

}  // namespace

ordered_json consul_json(const ConsulTrouble& trouble) {
  if (!trouble.any()) return nullptr;
  return {{"what", trouble.what},
          {"since", format_rfc3339(trouble.since)},
          {"at_least", trouble.at_least}};
}

ordered_json queue_json(const QueueStatus& queue) {
  ordered_json out{{"name", queue.name}, {"role", role_text(queue.role)}};
  out["partitions"] = queue.partitions != 0 ? ordered_json(queue.partitions) : ordered_json{};
  out["leads"] = queue.leads;
  for (const Gauge& gauge : gauges()) add_gauge(gauge, queue, out);
  for (const WorkerStatus& worker : queue.workers) {
    ordered_json& one = out["workers"][worker.type];
    for (const auto& [state, count] : worker.states) one[state] = count;
    std::uint64_t ended = 0;
    for (const auto& [reason, count] : worker.ends) ended += count;
    one["ended"] = ended;
  }
  if (!queue.cannot_start.empty()) out["cannot_start"] = queue.cannot_start;
  if (!queue.log_error.empty()) out["log_error"] = queue.log_error;
  return out;
}

void add_status_routes(Router& router, Backend& backend) {
  router.add("GET", "/healthz", Access::kPublic,
             [](const Call&) { return text_response(200, "ok"); });
  router.add("GET", "/readyz", Access::kPublic, [&backend](const Call&) { return ready(backend); });
  router.add("GET", "/v1/status", [&backend](const Call&) { return status_response(backend); });
  router.add("GET", "/v1/tasks/*/why",
             [&backend](const Call& call) { return why_response(backend, call); });
}

}  // namespace lictor::admin
