// /v1/logs: the output of attempts, which lies on the disk of the host that ran them.
//
//   ?id=                    the attempts whose output is here, and their sizes
//   ?id=&attempt=&offset=   the output from a byte on, a megabyte at most
//   ?node=                  asks the member of this name, and hands its answer on
//
// A client follows a log by asking again from where it is.

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/text.h"
#include "base/time_text.h"
#include "client/task_info.h"
#include "exec/output_log.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = 1U << 20U;  // in one answer

Response cannot_read(const Error& error) {
  return error_response(error.code == ErrorCode::kPermissionDenied ? 403 : 500, error.message);
}

// std::nullopt if the parameter is missing, or is no number up to `max`; then `bad` says so.
std::optional<std::uint64_t> number(const Request& request, const std::string& name,
                                    std::uint64_t max, std::string& bad) {
  const auto text = request.parameter(name);
  const auto value = to_number<std::uint64_t>(text.value_or(""));
  if (text && (!value || *value > max)) {
    bad = name + ": expected a whole number up to " + std::to_string(max);
    return std::nullopt;
  }
  return value;
}

Response listed(const std::string& queue, const std::string& id,
                const std::vector<exec::StoredLog>& logs) {
  ordered_json list = ordered_json::array();
  for (const exec::StoredLog& log : logs) {
    list.push_back(
        {{"attempt", log.attempt},
         {"token", log.token},
         {"size", log.size},
         {"running", log.running},
         {"error", client::text_or_null(log.error)},
         {"modified", log.modified == WallTime{} ? ordered_json{}
                                                 : ordered_json(format_rfc3339(log.modified))}});
  }
  return json_response(200, {{"queue", queue}, {"id", id}, {"logs", std::move(list)}});
}

Response bytes_response(const exec::StoredLog& log, std::uint64_t offset, std::string text) {
  const std::uint64_t size = std::max(log.size, offset + text.size());
  return {200,
          "text/plain; charset=utf-8",
          std::move(text),
          {{"Lictor-Log-Size", std::to_string(size)},
           {"Lictor-Log-Attempt", std::to_string(log.attempt)},
           {"Lictor-Log-Token", std::to_string(log.token)},
           {"Lictor-Running", log.running ? "true" : "false"}}};
}

// Answers with the output that is kept here.
Response own_logs(const LogStore& store, const Request& request) {
  std::string bad;
  const std::string queue = request.parameter("queue").value_or("default");
  const std::string id = request.parameter("id").value_or("");
  if (id.empty()) bad = "id: expected a task's id";
  const auto attempt = number(request, "attempt", std::numeric_limits<std::uint32_t>::max(), bad);
  const auto token = number(request, "token", std::numeric_limits<std::uint64_t>::max(), bad);
  const std::uint64_t offset =
      number(request, "offset", std::numeric_limits<std::int64_t>::max(), bad).value_or(0);
  if (!bad.empty()) return error_response(400, bad);

  const auto found = exec::stored_logs(store.directory, queue, id, store.active.get());
  if (!found) return cannot_read(found.error());
  if (!attempt) return listed(queue, id, *found);
  const auto log = std::find_if(found->rbegin(), found->rend(), [&](const auto& each) {
    return each.attempt == attempt && (!token || each.token == token);
  });
  if (log == found->rend()) {
    return error_response(
        404, "no output of attempt " + std::to_string(*attempt) + " of task " + id + " here");
  }
  auto text = exec::read_log(log->path, offset, kMaxBytes);
  return text ? bytes_response(*log, offset, std::move(*text)) : cannot_read(text.error());
}

// Asks the member that ran the task. The request goes on without "node", so that member answers it.
Response relayed(Backend& backend, const Request& request, const std::string& node) {
  std::string target =
      "/v1/logs?queue=" + wire::query_value(request.parameter("queue").value_or("default")) +
      "&id=" + wire::query_value(request.parameter("id").value_or(""));
  for (const char* name : {"attempt", "token", "offset"}) {
    if (const auto value = request.parameter(name)) {
      target += std::string{"&"} + name + "=" + wire::query_value(*value);
    }
  }
  auto answer = backend.ask_member(request.parameter("queue").value_or("default"), node, target);
  if (!answer) return error_response(502, answer.error().message);
  const bool is_text = request.parameter("attempt").has_value();
  return {200, is_text ? "text/plain; charset=utf-8" : "application/json", *std::move(answer), {}};
}

}  // namespace

void add_log_routes(Router& router, Backend& backend, const LogStore& store) {
  router.add("GET", "/v1/logs", [&store, &backend](const Call& call) {
    const std::string node = call.request.parameter("node").value_or("");
    return node.empty() || node == store.node ? own_logs(store, call.request)
                                              : relayed(backend, call.request, node);
  });
}

}  // namespace lictor::admin
