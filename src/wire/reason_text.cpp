#include "wire/reason_text.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "wire/json_text.h"

namespace lictor::wire {

using core::Reason;
using Kind = core::Reason::Kind;

std::string_view reason_name(Kind kind) {
  switch (kind) {
    case Kind::kUnknownTask:
      return "unknown_task";
    case Kind::kReading:
      return "reading";
    case Kind::kNotLeading:
      return "not_leading";
    case Kind::kDraining:
      return "draining";
    case Kind::kPaused:
      return "paused";
    case Kind::kRunning:
      return "running";
    case Kind::kClaiming:
      return "claiming";
    case Kind::kPrefetched:
      return "claimed_ahead";
    case Kind::kSettling:
      return "ending";
    case Kind::kBurying:
      return "dying";
    case Kind::kTooLarge:
      return "too_large";
    case Kind::kUnnameable:
      return "unnameable";
    case Kind::kNoExecutor:
      return "no_executor";
    case Kind::kCannotStart:
      return "cannot_start";
    case Kind::kNotDue:
      return "not_due";
    case Kind::kBackoff:
      return "backoff";
    case Kind::kRefused:
      return "write_refused";
    case Kind::kSerial:
      return "serial_key";
    case Kind::kOrder:
      return "order";
    case Kind::kConcurrency:
      return "concurrency";
    case Kind::kUnacked:
      return "max_unacked";
    case Kind::kRate:
      return "rate_limit";
    case Kind::kLastChance:
      return "last_chance";
    case Kind::kStoreTrouble:
      return "consul";
    case Kind::kNext:
      return "next";
  }
  return "unknown";
}

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

std::string reason_text(const Reason& reason, const Layout& layout) {
  const std::string task = id_of(reason.key, layout);
  const std::string until = reason.until ? format_rfc3339(*reason.until) : std::string{};
  switch (reason.kind) {
    case Kind::kUnknownTask:
      return "the leader knows of no such task";
    case Kind::kReading:
      return "the leader has just taken over and is still reading the tasks";
    case Kind::kNotLeading:
      return "this member does not lead the queue, or cannot prove that it does";
    case Kind::kDraining:
      return "the leader is stepping down; the next leader continues";
    case Kind::kPaused:
      return "the queue is paused" + (reason.text.empty() ? "" : " by " + reason.text) +
             "; \"lictor resume\" ends the pause";
    case Kind::kRunning:
      return "it is running, attempt " + std::to_string(reason.count) + ", since " +
             format_rfc3339(reason.since.value_or(WallTime{})) + progress_text(reason.progress) +
             (reason.text.empty() ? "" : ", and is being stopped: " + reason.text);
    case Kind::kClaiming:
      return "its claim is on the way to Consul";
    case Kind::kPrefetched:
      if (reason.until) return "it is claimed ahead, and starts when it is due, at " + until;
      return "it is claimed ahead and waits for one of " + std::to_string(reason.count) + " slots" +
             (reason.key.empty() ? "" : "; task " + task + " is running");
    case Kind::kSettling:
      return "its job has ended, and the result is being written";
    case Kind::kBurying:
      return "it is on its way to the dead letters";
    case Kind::kTooLarge:
      return "its record is too large to be claimed (" + reason.text +
             "); write it anew, smaller, or delete it";
    case Kind::kUnnameable:
      return "its key is not valid UTF-8, and Consul lists it under other bytes; delete it by the "
             "bytes it was written with, and write the task under another key";
    case Kind::kNoExecutor:
      return "the leader has no executor for type " + reason.text +
             R"(; configure one, or "*" for all types)";
    case Kind::kCannotStart:
      return "the leader's host cannot start jobs now, and tries again at " + until + ": " +
             reason.text;
    case Kind::kNotDue:
      return "it is not due until " + until;
    case Kind::kBackoff:
      return "attempt " + std::to_string(reason.count) + " failed, and it waits until " + until +
             (reason.text.empty() ? "" : ": " + reason.text);
    case Kind::kRefused:
      return "Consul refused its claim; the next try is at " + until + ": " + reason.text;
    case Kind::kSerial:
      return "task " + task + " of the same serialKey (" + reason.text + ") has not ended yet" +
             (reason.count == 0 ? ""
                                : ", and " + tasks(reason.count) +
                                      (reason.count == 1 ? " comes" : " come") + " before it");
    case Kind::kOrder:
      return tasks(reason.count) +
             (reason.count == 1 ? " that is due comes" : " that are due come") +
             " before it; the next is " + task;
    case Kind::kConcurrency:
      return "all slots are taken (concurrency " + std::to_string(reason.count) + ")" +
             (reason.key.empty() ? "" : "; task " + task + " is one of them");
    case Kind::kUnacked:
      return "too many results are not yet written to Consul (max_unacked " +
             std::to_string(reason.count) + ")";
    case Kind::kRate:
      return "the queue's rate_limit is used up until " + until;
    case Kind::kLastChance:
      return "this task runs alone: one more lost owner makes it a dead letter" +
             (reason.key.empty() ? "" : "; task " + task + " is running");
    case Kind::kStoreTrouble:
      return "Consul did not confirm the last write; the next try is at " + until;
    case Kind::kNext:
      return "nothing blocks it; it is claimed next";
  }
  return {};
}

std::string reasons_json(const std::vector<Reason>& reasons, const Layout& layout) {
  std::string text{'['};
  for (const Reason& reason : reasons) {
    if (text.size() > 1) text += ',';
    text += "{\"reason\":\"" + std::string{reason_name(reason.kind)} +
            "\",\"text\":" + json_quoted(reason_text(reason, layout));
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
