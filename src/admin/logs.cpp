// /v1/logs: the output of attempts, which lies on the disk of the host that ran them.
//
//   ?id=                    the attempts whose output is here, and their sizes
//   ?id=&attempt=&offset=   the output from a byte on, a megabyte at most
//   ...&wait=               holds the answer until there is more, or the attempt has ended
//   ?node=                  asks the member of this name, and hands its answer on
//
// A client follows a log by asking again from where it is. A waiting client holds no worker: the
// exchange is kept and looked at every 200 ms, and at most kMaxWaiters wait, so that followers
// leave connections for others.

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "client/task_info.h"
#include "exec/output_log.h"
#include "wire/layout.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = 1U << 20U;  // in one answer
constexpr auto kMaxWait = 30s;
constexpr auto kLookEvery = 200ms;
// Few of the connections, so that the followers of logs leave room for other clients.
constexpr int kMaxWaiters = 32;

Response cannot_read(const Error& error) {
  return error_response(error.code == ErrorCode::kPermissionDenied ? 403 : 500, error.message);
}

// std::nullopt if the parameter is missing, or is no number up to `max`; `bad` then says so.
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

struct LogQuestion {
  std::string queue, id;
  std::optional<std::uint64_t> attempt, token;
  std::uint64_t offset = 0;
  std::chrono::seconds wait{};
};

Response listed(const LogQuestion& question, const std::vector<exec::StoredLog>& logs) {
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
  return json_response(200,
                       {{"queue", question.queue}, {"id", question.id}, {"logs", std::move(list)}});
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

// Answers for the output that is kept here, and holds the clients that wait for more.
class Followers : public std::enable_shared_from_this<Followers> {
 public:
  explicit Followers(const LogStore& store) : store_(store) {}

  std::optional<Response> answer(const Call& call) {
    const Request& request = call.request;
    LogQuestion question;
    std::string bad;
    question.queue = request.parameter("queue").value_or("default");
    question.id = request.parameter("id").value_or("");
    if (question.id.empty()) bad = "id: expected a task's id";
    question.attempt = number(request, "attempt", std::numeric_limits<std::uint32_t>::max(), bad);
    question.token = number(request, "token", std::numeric_limits<std::uint64_t>::max(), bad);
    question.offset =
        number(request, "offset", std::numeric_limits<std::int64_t>::max(), bad).value_or(0);
    question.wait =
        std::chrono::seconds{number(request, "wait", kMaxWait.count(), bad).value_or(0)};
    if (!bad.empty()) return error_response(400, bad);

    const auto found =
        exec::stored_logs(store_.directory, question.queue, question.id, store_.active.get());
    if (!found) return cannot_read(found.error());
    if (!question.attempt) return listed(question, *found);
    const auto log = std::find_if(found->rbegin(), found->rend(), [&](const auto& each) {
      return each.attempt == question.attempt && (!question.token || each.token == question.token);
    });
    if (log == found->rend()) {
      return error_response(404, "no output of attempt " + std::to_string(*question.attempt) +
                                     " of task " + question.id + " here");
    }
    auto text = exec::read_log(log->path, question.offset, kMaxBytes);
    if (!text) return cannot_read(text.error());
    if (!text->empty() || !log->running || question.wait == 0s) {
      return bytes_response(*log, question.offset, std::move(*text));
    }
    if (waiting_.fetch_add(1) >= kMaxWaiters) {
      --waiting_;
      Response busy = error_response(503, "too many follow logs here; ask without wait");
      busy.headers.emplace_back("Retry-After", "1");
      return busy;
    }
    wait(call.exchange, *log, question.offset, boot_now() + question.wait);
    return std::nullopt;
  }

 private:
  void wait(const ExchangePtr& exchange, const exec::StoredLog& log, std::uint64_t offset,
            Instant until) {
    exchange->later(kLookEvery, [self = shared_from_this(), exchange, log, offset, until] {
      self->look(exchange, log, offset, until);
    });
  }

  void look(const ExchangePtr& exchange, exec::StoredLog log, std::uint64_t offset, Instant until) {
    // Look whether it runs before reading: if the attempt has ended, this read gets all the rest.
    log.running = store_.active->contains(log.path);
    auto text = exec::read_log(log.path, offset, kMaxBytes);
    if (text && text->empty() && log.running && boot_now() < until && !exchange->gone()) {
      return wait(exchange, log, offset, until);
    }
    --waiting_;
    exchange->answer(text ? bytes_response(log, offset, std::move(*text))
                          : cannot_read(text.error()));
  }

  const LogStore& store_;
  std::atomic<int> waiting_ = 0;
};

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
  router.add("GET", "/v1/logs",
             [followers = std::make_shared<Followers>(store), &backend,
              own = store.node](const Call& call) -> std::optional<Response> {
               const std::string node = call.request.parameter("node").value_or("");
               if (!node.empty() && node != own) return relayed(backend, call.request, node);
               return followers->answer(call);
             });
}

}  // namespace lictor::admin
