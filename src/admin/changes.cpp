// The changes, by POST, PUT and DELETE. The guard has checked origin and token before.
//
//   request --> queue of ?queue= --> body --> the change, by client/ --> log --> answer
//
// Each route calls the method of Client or Schedules that the command of the same name calls, so
// both have the same checks and the same races. The daemon makes the change with its own Consul
// token: nothing but the guard decides who may change tasks. So each change is logged with the
// client that asked for it.
//
// A change takes effect in Consul, not in this daemon. It may be asked of any daemon of the queue,
// and the leader sees it by its watch.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/try.h"
#include "client/change.h"
#include "client/schedules.h"
#include "client/task_info.h"
#include "runtime/log.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Reads a request's body: an object, or an empty body, which counts as an object without members.
Result<json> read_body(const Request& request) {
  if (request.body.find_first_not_of(" \t\r\n") == std::string::npos) return json::object();
  auto body = parse_json(request.body);
  if (!body || !body->is_object()) {
    return fail(ErrorCode::kInvalid, "body: expected a JSON object or nothing");
  }
  return *std::move(body);
}

Result<std::string> text_of(const json& body, const char* name) {
  const auto it = body.find(name);
  if (it == body.end() || it->is_null()) return std::string{};
  if (it->is_string()) return it->get<std::string>();
  return fail(ErrorCode::kInvalid, std::string{name} + ": expected a string");
}

Result<bool> flag_of(const json& body, const char* name) {
  const auto it = body.find(name);
  if (it == body.end() || it->is_null()) return false;
  if (it->is_boolean()) return it->get<bool>();
  return fail(ErrorCode::kInvalid, std::string{name} + ": expected true or false");
}

// The dead letters of a bulk change. Without a filter "all": true is required: an empty body
// must not purge everything.
Result<TaskFilter> read_filter(const json& body) {
  TaskFilter filter;
  filter.state = TaskState::kDead;
  for (const auto& [name, target] :
       {std::pair{"type", &filter.type}, {"reason", &filter.reason}, {"error", &filter.error}}) {
    LICTOR_TRY(*target, text_of(body, name));
  }
  LICTOR_TRY(const bool all, flag_of(body, "all"));
  if (!all && filter.type.empty() && filter.reason.empty() && filter.error.empty()) {
    return fail(
        ErrorCode::kInvalid,
        R"(expected "type", "reason" or "error" of the dead letters, their "ids", or "all": true)");
  }
  return filter;
}

// The tasks of "ids". std::nullopt if the body has none.
Result<std::optional<std::vector<std::string>>> read_ids(const json& body) {
  constexpr std::size_t kMostIds = 200;  // each takes some requests to Consul
  const auto it = body.find("ids");
  if (it == body.end() || it->is_null()) return std::nullopt;
  const bool fits =
      it->is_array() && !it->empty() && it->size() <= kMostIds &&
      std::all_of(it->begin(), it->end(), [](const json& id) { return id.is_string(); });
  if (!fits) {
    return fail(ErrorCode::kInvalid,
                "ids: expected 1 to " + std::to_string(kMostIds) + " ids in an array");
  }
  return it->get<std::vector<std::string>>();
}

// Counts all, and names a hundred of the refused ones.
ordered_json bulk_json(const BulkResult& result) {
  ordered_json refused = ordered_json::array();
  for (const BulkResult::Refusal& each : result.refused) {
    if (refused.size() == 100) break;
    refused.push_back({{"id", each.id}, {"error", each.error.message}});
  }
  return {{"changed", result.tasks.size()},
          {"refused", result.refused.size()},
          {"refusals", std::move(refused)}};
}

// A requested change.
struct ChangeRequest {
  const StoredQueue& queue;
  std::string id;  // in the path
  json body;
  std::string by;
  const Request& request;
};

// Changes dead letters, given by their ids or selected by the filter.
template <class One, class All>
Result<ordered_json> change_letters(const ChangeRequest& asked, const One& one, const All& all) {
  LICTOR_TRY(const auto ids, read_ids(asked.body));
  if (ids) return bulk_json(client::change_each(*ids, one));
  LICTOR_TRY(const TaskFilter filter, read_filter(asked.body));
  return all(filter).map(bulk_json);
}

Result<ordered_json> outcome_json(const Result<TaskInfo>& task) {
  return task.map([](const TaskInfo& info) {
    return ordered_json{{"task", client::task_json(info)}};
  });
}

Result<ordered_json> outcome_json(const Result<bool>& changed) {
  return changed.map([](bool value) { return ordered_json{{"changed", value}}; });
}

client::Schedules schedules_of(const ChangeRequest& asked) {
  return {asked.queue.queue.store, asked.queue.queue.layout};
}

template <class Done>
void log_change(const Done& done, const char* change, const std::string& queue, const char* subject,
                const std::string& id, const Request& request) {
  runtime::log(runtime::Level::kInfo, done ? "changed by the admin API" : "change refused",
               {{"change", change},
                {"queue", queue},
                {subject, excerpt(id, 200)},
                {"by", request.client},
                {"error", done ? std::string{} : done.error().message}});
}

struct ChangeRoute {
  const char* method;
  const char* pattern;
  const char* subject;  // the kind of thing that has the id
  const char* name;     // for the log
  int status;
  Result<ordered_json> (*change)(const ChangeRequest& asked);
};

using Asked = const ChangeRequest&;
constexpr ChangeRoute kRoutes[] = {
    {"POST", "/v1/tasks/*/cancel", "task", "cancel", 200,
     [](Asked asked) { return outcome_json(asked.queue.client.cancel(asked.id)); }},
    {"POST", "/v1/tasks/cancel", "task", "cancel many", 200,
     [](Asked asked) -> Result<ordered_json> {
       LICTOR_TRY(const auto ids, read_ids(asked.body));
       if (!ids) return fail(ErrorCode::kInvalid, R"(expected "ids" of tasks)");
       return bulk_json(client::change_each(
           *ids, [&](const auto& id) { return asked.queue.client.cancel(id); }));
     }},
    {"POST", "/v1/dead/retry", "task", "retry many", 200,
     [](Asked asked) -> Result<ordered_json> {
       LICTOR_TRY(const bool drop_expiry, flag_of(asked.body, "drop_expiry"));
       Client& tasks = asked.queue.client;
       return change_letters(
           asked, [&](const std::string& id) { return tasks.retry(id, drop_expiry); },
           [&](const TaskFilter& filter) { return tasks.retry_all(filter, drop_expiry); });
     }},
    {"POST", "/v1/dead/purge", "task", "purge many", 200,
     [](Asked asked) {
       Client& tasks = asked.queue.client;
       return change_letters(
           asked, [&](const std::string& id) { return tasks.purge(id); },
           [&](const TaskFilter& filter) { return tasks.purge_all(filter); });
     }},
    {"POST", "/v1/dead/*/retry", "task", "retry", 200,
     [](Asked asked) -> Result<ordered_json> {
       LICTOR_TRY(const bool drop_expiry, flag_of(asked.body, "drop_expiry"));
       return outcome_json(asked.queue.client.retry(asked.id, drop_expiry));
     }},
    {"POST", "/v1/dead/*/purge", "task", "purge", 200,
     [](Asked asked) { return outcome_json(asked.queue.client.purge(asked.id)); }},
    {"POST", "/v1/pause", "task", "pause", 200,
     [](Asked asked) -> Result<ordered_json> {
       LICTOR_TRY(const std::string reason, text_of(asked.body, "reason"));
       return outcome_json(asked.queue.client.pause(reason, asked.by));
     }},
    {"POST", "/v1/resume", "task", "resume", 200,
     [](Asked asked) { return outcome_json(asked.queue.client.resume(asked.by)); }},
    {"POST", "/v1/step-down", "task", "step down", 202,
     [](Asked asked) {
       return asked.queue.client.step_down().map([] { return ordered_json{{"asked", true}}; });
     }},
    {"POST", "/v1/schedules/*/pause", "schedule", "pause schedule", 200,
     [](Asked asked) { return outcome_json(schedules_of(asked).set_paused(asked.id, true)); }},
    {"POST", "/v1/schedules/*/resume", "schedule", "resume schedule", 200,
     [](Asked asked) { return outcome_json(schedules_of(asked).set_paused(asked.id, false)); }},
    {"POST", "/v1/schedules/*/run", "schedule", "run schedule", 201,
     [](Asked asked) {
       return schedules_of(asked).run(asked.id, wall_now()).map([](const std::string& id) {
         return ordered_json{{"id", id}};
       });
     }},
    // The body is the record, to the byte.
    {"PUT", "/v1/schedules/*", "schedule", "write schedule", 200,
     [](Asked asked) -> Result<ordered_json> {
       client::Schedules schedules = schedules_of(asked);
       const bool creates = asked.request.parameter("create").has_value();
       LICTOR_TRY(const auto written, creates ? schedules.add(asked.id, asked.request.body)
                                              : schedules.replace(asked.id, asked.request.body));
       return ordered_json{{"schedule", client::schedule_json(written, wall_now())}};
     }},
    {"DELETE", "/v1/schedules/*", "schedule", "remove schedule", 200,
     [](Asked asked) {
       return schedules_of(asked).remove(asked.id).map([](const auto&) {
         return ordered_json{{"removed", true}};
       });
     }},
};

}  // namespace

void add_change_routes(Router& router, const StoredQueues& queues) {
  // The body is the record, as a producer would write it to Consul.
  router.add("POST", "/v1/tasks", [&queues](const Call& call) -> Result<std::optional<Response>> {
    LICTOR_TRY(const StoredQueue* queue, find_queue(queues, call.request));
    const auto sent = queue->client.submit_record(call.request.body);
    log_change(sent, "submit", queue->queue.name, "task", sent ? sent->id : "", call.request);
    if (!sent) return tl::unexpected(sent.error());
    return json_response(201, {{"id", sent->id}, {"index", sent->index}});
  });
  for (const ChangeRoute& route : kRoutes) {
    router.add(route.method, route.pattern,
               [&queues, &route](const Call& call) -> Result<std::optional<Response>> {
                 LICTOR_TRY(const StoredQueue* queue, find_queue(queues, call.request));
                 LICTOR_TRY(json body, read_body(call.request));
                 const std::string id{call.wildcard};
                 const auto done =
                     route.change({*queue, id, std::move(body), "admin API, " + call.request.client,
                                   call.request});
                 log_change(done, route.name, queue->queue.name, route.subject, id, call.request);
                 return done.map([&](const ordered_json& answer) {
                   return std::optional{json_response(route.status, answer)};
                 });
               });
  }
}

}  // namespace lictor::admin
