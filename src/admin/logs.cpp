#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "base/clock.h"
#include "base/time_text.h"
#include "exec/stored_logs.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr std::size_t kMaxBytes = 1U << 20U;  // in one answer
constexpr auto kLookEvery = 200ms;
// Half of the connections, so that who follows a log never locks out who asks for the status.
constexpr int kMaxWaiters = 16;

Response cannot_read(const Error& error) {
  return error_response(error.code == ErrorCode::kPermissionDenied ? 403 : 500, error.message);
}

// Nothing: the parameter is not there, or is no number up to `max`, which `bad` then names.
std::optional<std::uint64_t> number(const Request& request, const std::string& name,
                                    std::uint64_t max, std::string& bad) {
  const auto text = request.parameter(name);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, value);
  if (text->empty() || read.ec != std::errc{} || read.ptr != end || value > max) {
    bad = name + ": expected a whole number up to " + std::to_string(max);
    return std::nullopt;
  }
  return value;
}

struct Question {
  std::string queue, id;
  std::optional<std::uint64_t> attempt, token;
  std::uint64_t offset = 0;
  std::chrono::seconds wait{};
};

class Logs {
 public:
  explicit Logs(const LogStore& store) : store_(store) {}

  Response answer(const Request& request) {
    Question question;
    std::string bad;
    question.queue = request.parameter("queue").value_or("default");
    question.id = request.parameter("id").value_or("");
    if (question.id.empty()) bad = "id: expected a task's id";
    question.attempt = number(request, "attempt", std::numeric_limits<std::uint32_t>::max(), bad);
    question.token = number(request, "token", std::numeric_limits<std::uint64_t>::max(), bad);
    question.offset =
        number(request, "offset", std::numeric_limits<std::int64_t>::max(), bad).value_or(0);
    const auto max_wait = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(kMaxWait).count());
    question.wait = std::chrono::seconds{number(request, "wait", max_wait, bad).value_or(0)};
    if (!bad.empty()) return error_response(400, bad);
    return question.attempt ? bytes(request, question) : list(question);
  }

 private:
  [[nodiscard]] auto logs(const Question& question) const {
    return exec::stored_logs(store_.directory, question.queue, question.id, store_.active.get());
  }

  [[nodiscard]] Response list(const Question& question) const {
    const auto found = logs(question);
    if (!found) return cannot_read(found.error());
    ordered_json list = ordered_json::array();
    for (const exec::StoredLog& log : *found) {
      list.push_back(
          {{"attempt", log.attempt},
           {"token", log.token},
           {"size", log.size},
           {"running", log.running},
           {"modified", log.modified == WallTime{} ? ordered_json{}
                                                   : ordered_json(format_rfc3339(log.modified))}});
    }
    const ordered_json told{
        {"queue", question.queue}, {"id", question.id}, {"logs", std::move(list)}};
    Response response;
    response.body = told.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    return response;
  }

  Response bytes(const Request& request, const Question& question) {
    const auto found = logs(question);
    if (!found) return cannot_read(found.error());
    const auto log = std::find_if(found->rbegin(), found->rend(), [&](const auto& each) {
      return each.attempt == question.attempt && (!question.token || each.token == question.token);
    });
    if (log == found->rend()) {
      return error_response(404, "no output of attempt " + std::to_string(*question.attempt) +
                                     " of task " + question.id + " here");
    }
    // Asked before the bytes are read: once it has ended, what is read next is all there is.
    bool running = log->running;
    auto text = exec::read_log(log->path, question.offset, kMaxBytes);
    if (text && text->empty() && running && question.wait > 0s) {
      if (waiters_.fetch_add(1) >= kMaxWaiters) {
        --waiters_;
        Response busy = error_response(503, "too many follow logs here; ask without wait");
        busy.headers.emplace_back("Retry-After", "1");
        return busy;
      }
      const Instant until = boot_now() + question.wait;
      while (text && text->empty() && running && boot_now() < until && request.pause(kLookEvery)) {
        running = store_.active->contains(log->path);
        text = exec::read_log(log->path, question.offset, kMaxBytes);
      }
      --waiters_;
    }
    if (!text) return cannot_read(text.error());
    Response response;
    response.content_type = "text/plain; charset=utf-8";
    const std::uint64_t size = std::max(log->size, question.offset + text->size());
    response.headers = {{"Lictor-Log-Size", std::to_string(size)},
                        {"Lictor-Log-Attempt", std::to_string(log->attempt)},
                        {"Lictor-Log-Token", std::to_string(log->token)},
                        {"Lictor-Running", running ? "true" : "false"}};
    response.body = std::move(*text);
    return response;
  }

  const LogStore& store_;
  std::atomic<int> waiters_ = 0;
};

}  // namespace

void add_log_routes(Router& router, const LogStore& store) {
  router.add("GET", "/v1/logs", [logs = std::make_shared<Logs>(store)](const Request& request) {
    return logs->answer(request);
  });
}

}  // namespace lictor::admin
