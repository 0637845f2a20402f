// What changes anything, by POST or DELETE. The guard has checked origin and token before.

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/text.h"
#include "client/schedules.h"
#include "client/task_info.h"
#include "runtime/log.h"
#include "wire/json_text.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A request's body: an object, or nothing.
Result<json> read_body(const Request& request) {
  if (request.body.find_first_not_of(" \t\r\n") == std::string::npos) return json::object();
  auto body = wire::parse_json(request.body);
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

// Which dead letters a bulk change takes.
Result<TaskFilter> read_filter(const json& body) {
  TaskFilter filter;
  filter.state = TaskState::kDead;
  for (const auto& [name, target] :
       {std::pair{"type", &filter.type}, {"reason", &filter.reason}, {"error", &filter.error}}) {
    auto text = text_of(body, name);
    if (!text) return tl::unexpected(text.error());
    *target = *std::move(text);
  }
  const auto all = flag_of(body, "all");
  if (!all) return tl::unexpected(all.error());
  if (!*all && filter.type.empty() && filter.reason.empty() && filter.error.empty()) {
    return fail(ErrorCode::kInvalid,
                R"(expected "type", "reason" or "error" of the dead letters, or "all": true)");
  }
  return filter;
}

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

// One kind of change: what it does, and what the log calls it.
class Changes {
 public:
  using Change = std::function<Result<ordered_json>(const StoredQueue& queue, const std::string& id,
                                                    const json& body, const std::string& by)>;

  Changes(Router& router, const StoredQueues& queues) : router_(router), queues_(queues) {}

  void add(const char* pattern, const char* name, Change change, int status = 200) {
    add("POST", pattern, "task", name, std::move(change), status);
  }
  // `subject`: what the id is of.
  void add(const char* method, const char* pattern, const char* subject, const char* name,
           Change change, int status = 200) {
    router_.add(method, pattern,
                [this_queues = &queues_, subject, name, status,
                 change = std::move(change)](const Call& call) -> std::optional<Response> {
                  std::optional<Response> refused;
                  const StoredQueue* queue = find_queue(*this_queues, call.request, refused);
                  if (queue == nullptr) return refused;
                  const auto body = read_body(call.request);
                  if (!body) return response_of(body.error());
                  const std::string id{call.wildcard};
                  const std::string by = "admin face, " + call.request.client;
                  const auto done = change(*queue, id, *body, by);
                  runtime::log(runtime::Level::kInfo,
                               done ? "changed by the admin face" : "change refused",
                               {{"change", name},
                                {"queue", queue->queue.name},
                                {subject, excerpt(id, 200)},
                                {"by", call.request.client},
                                {"error", done ? std::string{} : done.error().message}});
                  return done ? json_response(status, *done) : response_of(done.error());
                });
  }

 private:
  Router& router_;
  const StoredQueues& queues_;
};

template <class Value>
Result<ordered_json> told(Result<Value> result, const char* name,
                          ordered_json (*as_json)(const Value&)) {
  if (!result) return tl::unexpected(std::move(result.error()));
  return ordered_json{{name, as_json(*result)}};
}

Result<ordered_json> changed(const Result<bool>& result) {
  if (!result) return tl::unexpected(result.error());
  return ordered_json{{"changed", *result}};
}

client::Schedules schedules_of(const StoredQueue& queue) {
  return {queue.queue.store, queue.queue.layout};
}

void add_schedule_changes(Changes& changes) {
  using Queue = const StoredQueue&;
  using Name = const std::string&;
  const auto add = [&](const char* method, const char* pattern, const char* name,
                       Changes::Change change, int status = 200) {
    changes.add(method, pattern, "schedule", name, std::move(change), status);
  };
  add("POST", "/v1/schedules/*/pause", "pause schedule", [](Queue queue, Name name, auto&&...) {
    return changed(schedules_of(queue).set_paused(name, true));
  });
  add("POST", "/v1/schedules/*/resume", "resume schedule", [](Queue queue, Name name, auto&&...) {
    return changed(schedules_of(queue).set_paused(name, false));
  });
  add(
      "POST", "/v1/schedules/*/run", "run schedule",
      [](Queue queue, Name name, auto&&...) -> Result<ordered_json> {
        const auto id = schedules_of(queue).run(name, wall_now());
        if (!id) return tl::unexpected(id.error());
        return ordered_json{{"id", *id}};
      },
      201);
  add("DELETE", "/v1/schedules/*", "remove schedule",
      [](Queue queue, Name name, auto&&...) -> Result<ordered_json> {
        const auto removed = schedules_of(queue).remove(name);
        if (!removed) return tl::unexpected(removed.error());
        return ordered_json{{"removed", true}};
      });
}

}  // namespace

Response response_of(const Error& error) {
  const auto status = [&] {
    switch (error.code) {
      case ErrorCode::kInvalid:
        return 400;
      case ErrorCode::kPermissionDenied:
        return 403;
      case ErrorCode::kNotFound:
        return 404;
      case ErrorCode::kConflict:
        return 409;
      case ErrorCode::kTooLarge:
        return 413;
      case ErrorCode::kUnavailable:
        return 503;
      case ErrorCode::kTimeout:
        return 504;
      default:
        return 500;
    }
  }();
  return error_response(status, error.message);
}

const StoredQueue* find_queue(const StoredQueues& queues, const Request& request,
                              std::optional<Response>& refused) {
  const std::string name = request.parameter("queue").value_or("default");
  std::string known;
  for (const StoredQueue& each : queues) {
    if (each.queue.name == name) return &each;
    known += (known.empty() ? "" : ", ") + each.queue.name;
  }
  refused = error_response(
      404, "this daemon serves no queue \"" + excerpt(name) + "\"; ?queue= takes one of: " + known);
  return nullptr;
}

void add_change_routes(Router& router, const StoredQueues& queues) {
  Changes changes{router, queues};
  using Queue = const StoredQueue&;
  using Id = const std::string&;
  using Body = const json&;
  // The body is the record, as a producer would write it to Consul.
  router.add("POST", "/v1/tasks", [&queues](const Call& call) -> std::optional<Response> {
    std::optional<Response> refused;
    const StoredQueue* queue = find_queue(queues, call.request, refused);
    if (queue == nullptr) return refused;
    const auto sent = queue->client.submit_record(call.request.body);
    if (!sent) return response_of(sent.error());
    runtime::log(runtime::Level::kInfo, "changed by the admin face",
                 {{"change", "submit"},
                  {"queue", queue->queue.name},
                  {"task", sent->id},
                  {"by", call.request.client}});
    return json_response(201, {{"id", sent->id}, {"index", sent->index}});
  });
  changes.add("/v1/tasks/*/cancel", "cancel", [](Queue queue, Id id, Body, Id) {
    return told(queue.client.cancel(id), "task", client::task_json);
  });
  changes.add("/v1/dead/retry", "retry many",
              [](Queue queue, Id, Body body, Id) -> Result<ordered_json> {
                const auto filter = read_filter(body);
                if (!filter) return tl::unexpected(filter.error());
                const auto drop_expiry = flag_of(body, "drop_expiry");
                if (!drop_expiry) return tl::unexpected(drop_expiry.error());
                const auto done = queue.client.retry_all(*filter, *drop_expiry);
                if (!done) return tl::unexpected(done.error());
                return bulk_json(*done);
              });
  changes.add("/v1/dead/purge", "purge many",
              [](Queue queue, Id, Body body, Id) -> Result<ordered_json> {
                const auto filter = read_filter(body);
                if (!filter) return tl::unexpected(filter.error());
                const auto done = queue.client.purge_all(*filter);
                if (!done) return tl::unexpected(done.error());
                return bulk_json(*done);
              });
  changes.add("/v1/dead/*/retry", "retry",
              [](Queue queue, Id id, Body body, Id) -> Result<ordered_json> {
                const auto drop_expiry = flag_of(body, "drop_expiry");
                if (!drop_expiry) return tl::unexpected(drop_expiry.error());
                return told(queue.client.retry(id, *drop_expiry), "task", client::task_json);
              });
  changes.add("/v1/dead/*/purge", "purge", [](Queue queue, Id id, Body, Id) {
    return told(queue.client.purge(id), "task", client::task_json);
  });
  add_schedule_changes(changes);
  changes.add("/v1/pause", "pause", [](Queue queue, Id, Body body, Id by) -> Result<ordered_json> {
    const auto reason = text_of(body, "reason");
    if (!reason) return tl::unexpected(reason.error());
    return changed(queue.client.pause(*reason, by));
  });
  changes.add("/v1/resume", "resume",
              [](Queue queue, Id, Body, Id by) { return changed(queue.client.resume(by)); });
  changes.add(
      "/v1/step-down", "step down",
      [](Queue queue, Id, Body, Id) -> Result<ordered_json> {
        if (auto asked = queue.client.step_down(); !asked) {
          return tl::unexpected(std::move(asked.error()));
        }
        return ordered_json{{"asked", true}};
      },
      202);
}

}  // namespace lictor::admin
