// A C++ executor's side of an attempt. Its answers are brought into the form that a program's have
// (JSON texts), so the same checks apply to all kinds of jobs later.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/executors.h"
#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::app {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxNoteBytes = 200;

// Parses only the members that an executor gets, since a record may be long. Of repeated names the
// last one counts, as in nlohmann's parser. Throws if the parameters nest too deep.
Task to_task(const exec::Attempt& attempt) {
  Task task{attempt.task_id, attempt.task_key, attempt.task_type,
            attempt.queue,   json::object(),   *attempt.record};
  std::string_view parameters;
  for (MemberWalk member{task.record}; member.next();) {
    if (member.name() == "taskPara") parameters = member.value_text();
  }
  if (parameters.empty() || parameters == "null") return task;
  auto parsed = parse_json(parameters);
  if (!parsed) {
    throw std::runtime_error{"taskPara is nested deeper than " + std::to_string(kMaxJsonDepth) +
                             " levels, too deep for an executor in C++"};
  }
  task.parameters = *std::move(parsed);
  return task;
}

std::string to_progress(double fraction, const std::string& note) {
  const double within = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  return json{{"fraction", within}, {"note", excerpt(to_utf8(note), kMaxNoteBytes)}}.dump();
}

// Makes the text that a program would write to LICTOR_COMMIT.
Result<std::string> to_commit(const std::vector<KvWrite>& writes) {
  json list = json::array();
  for (const KvWrite& write : writes) {
    if (write.key.empty() || !is_utf8(write.key)) {
      return fail(ErrorCode::kInvalid, "KV writes: key \"" + excerpt(to_utf8(write.key)) +
                                           "\": expected a key that is not empty, in UTF-8");
    }
    json item{{"key", write.key}};
    if (!write.value) {
      item["delete"] = true;
    } else if (is_utf8(*write.value)) {
      item["value"] = *write.value;
    } else {
      item["value_base64"] = base64_encode(*write.value);
    }
    if (write.cas) item["cas"] = *write.cas;
    list.push_back(std::move(item));
  }
  return list.dump();
}

Result<void> hand_over(const Context& context, const JobResult& result, exec::Exit& exit) {
  if (const auto writes = context.writes(); !writes.empty()) {
    LICTOR_TRY(auto commit, to_commit(writes));
    exit.commit = std::move(commit);
  }
  if (result.result()) {
    auto text = checked_text(*result.result());
    if (!text) return fail(text.error().code, "result: " + text.error().message);
    exit.result = *std::move(text);
  }
  return {};
}

}  // namespace

// The record is parsed when the executor asks for the task (Context::task()): a job that does not
// ask does not pay for it.
exec::Exit run_in_process(Executor& executor, const exec::Attempt& attempt,
                          const exec::JobTools& tools) {
  exec::Exit exit{};
  exit.attempt = attempt.id;
  const Context context{[&attempt] { return to_task(attempt); },
                        attempt.number,
                        attempt.fencing_token,
                        tools.deadline,
                        tools.stop,
                        [&tools](double fraction, const std::string& note) {
                          tools.note_progress(to_progress(fraction, note));
                        }};
  const JobResult result = executor.run(context);
  exit.error = result.error();
  switch (result.status()) {
    case JobResult::Status::kDone:
      exit.ending = exec::Ending::kDone;
      if (auto handed = hand_over(context, result, exit); !handed) {
        exit.ending = exec::Ending::kRetry;
        exit.error = std::move(handed.error().message);
        exit.commit.reset();
      }
      break;
    case JobResult::Status::kPermanent:
      exit.ending = exec::Ending::kPermanent;
      break;
    case JobResult::Status::kRetry:
      exit.ending = tools.stop.stop_requested() ? exec::Ending::kStopped : exec::Ending::kRetry;
      exit.retry_after = result.retry_after();
      break;
  }
  return exit;
}

}  // namespace lictor::app
