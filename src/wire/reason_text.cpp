#include "wire/reason_text.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "wire/json_text.h"

namespace lictor::wire {

using core::Reason;
using Kind = core::Reason::Kind;

namespace {

std::string id_of(const std::string& key, const Layout& layout) {
  return layout.task_id(key).value_or(key);
}

constexpr double kTiny = 1e-9;  // 0.29 * 100 is a little less than 29

// ", 50% done: and what it says"
std::string progress_text(std::string_view progress) {
  const auto said = parse_json(progress);
  if (!said || !said->is_object()) return {};
  const auto percent = static_cast<int>(said->value("fraction", 0.0) * 100 + kTiny);
  const std::string note = said->value("note", "");
  return ", " + std::to_string(percent) + "% done" + (note.empty() ? "" : ": " + note);
}

std::string tasks(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " task" : " tasks");
}

}  // namespace

ReasonWords words_of(const Reason& reason, const Layout& layout) {
  const std::string task = id_of(reason.key, layout);
  const std::string until = reason.until ? format_rfc3339(*reason.until) : std::string{};
  switch (reason.kind) {
    case Kind::kUnknownTask:
      return {"unknown_task", "the leader knows of no such task"};
    case Kind::kReading:
      return {"reading", "the leader has just taken over and is still reading the tasks"};
    case Kind::kNotLeading:
      return {"not_leading", "this member does not lead the queue, or cannot prove that it does"};
    case Kind::kDraining:
      return {"draining", "the leader is stepping down; the next leader continues"};
    case Kind::kPaused:
      return {"paused", "the queue is paused" + (reason.text.empty() ? "" : " by " + reason.text) +
                            "; \"lictor resume\" ends the pause"};
    case Kind::kRunning:
      return {"running", "it is running, attempt " + std::to_string(reason.count) + ", since " +
                             format_rfc3339(reason.since.value_or(WallTime{})) +
                             progress_text(reason.progress) +
                             (reason.text.empty() ? "" : ", and is being stopped: " + reason.text)};
    case Kind::kClaiming:
      return {"claiming", "its claim is on the way to Consul"};
    case Kind::kPrefetched:
      if (reason.until)
        return {"claimed_ahead", "it is claimed ahead, and starts when it is due, at " + until};
      return {"claimed_ahead", "it is claimed ahead and waits for one of " +
                                   std::to_string(reason.count) + " slots" +
                                   (reason.key.empty() ? "" : "; task " + task + " is running")};
    case Kind::kSettling:
      return {"ending", "its job has ended, and the result is being written"};
    case Kind::kBurying:
      return {"dying", "it is on its way to the dead letters"};
    case Kind::kTooLarge:
      return {"too_large", "its record is too large to be claimed (" + reason.text +
                               "); write it anew, smaller, or delete it"};
    case Kind::kUnnameable:
      return {"unnameable",
              "its key is not valid UTF-8, and Consul lists it under other bytes; delete it by the "
              "bytes it was written with, and write the task under another key"};
    case Kind::kNoExecutor:
      return {"no_executor", "the leader has no executor for type " + reason.text +
                                 R"(; configure one, or "*" for all types)"};
    case Kind::kCannotStart:
      return {"cannot_start", "the leader's host cannot start jobs now, and tries again at " +
                                  until + ": " + reason.text};
    case Kind::kNotDue:
      return {"not_due", "it is not due until " + until};
    case Kind::kBackoff:
      return {"backoff", "attempt " + std::to_string(reason.count) +
                             " failed, and it waits until " + until +
                             (reason.text.empty() ? "" : ": " + reason.text)};
    case Kind::kRefused:
      return {"write_refused",
              "Consul refused its claim; the next try is at " + until + ": " + reason.text};
    case Kind::kSerial:
      return {
          "serial_key",
          "task " + task + " of the same serialKey (" + reason.text + ") has not ended yet" +
              (reason.count == 0 ? ""
                                 : ", and " + tasks(reason.count) +
                                       (reason.count == 1 ? " comes" : " come") + " before it")};
    case Kind::kOrder:
      return {"order", tasks(reason.count) +
                           (reason.count == 1 ? " that is due comes" : " that are due come") +
                           " before it; the next is " + task};
    case Kind::kConcurrency:
      return {"concurrency", "all slots are taken (concurrency " + std::to_string(reason.count) +
                                 ")" +
                                 (reason.key.empty() ? "" : "; task " + task + " is one of them")};
    case Kind::kTypeSlots:
      return {"type_concurrency",
              "all slots of executor \"" + reason.text + "\" are taken (its concurrency is " +
                  std::to_string(reason.count) + ")" +
                  (reason.key.empty() ? "" : "; task " + task + " is one of them")};
    case Kind::kUnacked:
      return {"max_unacked", "too many results are not yet written to Consul (max_unacked " +
                                 std::to_string(reason.count) + ")"};
    case Kind::kRate:
      return {"rate_limit", "the queue's rate_limit is used up until " + until};
    case Kind::kLastChance:
      return {"last_chance", "this task runs alone: one more lost owner makes it a dead letter" +
                                 (reason.key.empty() ? "" : "; task " + task + " is running")};
    case Kind::kStoreTrouble:
      return {"consul", "Consul did not confirm the last write; the next try is at " + until};
    case Kind::kNext:
      return {"next", "nothing blocks it; it is claimed next"};
  }
  return {"unknown", ""};
}

std::string reasons_json(const std::vector<Reason>& reasons, const Layout& layout) {
  std::string text{'['};
  for (const Reason& reason : reasons) {
    if (text.size() > 1) text += ',';
    const ReasonWords words = words_of(reason, layout);
    text += "{\"reason\":\"" + words.name + "\",\"text\":" + json_quoted(words.text);
    if (reason.until) text += ",\"until\":" + json_quoted(format_rfc3339(*reason.until));
    if (reason.since) text += ",\"since\":" + json_quoted(format_rfc3339(*reason.since));
    if (!reason.key.empty()) text += ",\"task\":" + json_quoted(id_of(reason.key, layout));
    if (reason.count != 0) text += ",\"count\":" + std::to_string(reason.count);
    if (!reason.progress.empty()) text += ",\"progress\":" + reason.progress;
    text += '}';
  }
  return text + "]";
}

}  // namespace lictor::wire
