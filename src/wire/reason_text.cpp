#include "wire/reason_text.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"

namespace lictor::wire {

using core::Reason;
using Kind = core::Reason::Kind;

namespace {

std::string id_of(const std::string& key, const Layout& layout) {
  return layout.task_id(key).value_or(key);
}

// "3 tasks", "5000 or more tasks"
std::string tasks_before(std::size_t count) {
  return count < Reason::kMostCounted ? counted(count, "task")
                                      : fmt::format("{} or more tasks", count);
}

constexpr double kTiny = 1e-9;  // 0.29 * 100 is a little less than 29

// ", 50% done: and its note"
std::string progress_text(std::string_view progress) {
  const auto said = parse_json(progress);
  if (!said || !said->is_object()) return {};
  const auto percent = static_cast<int>(said->value("fraction", 0.0) * 100 + kTiny);
  const std::string note = said->value("note", "");
  return fmt::format(", {}% done{}{}", percent, note.empty() ? "" : ": ", note);
}

}  // namespace

ReasonWords words_of(const Reason& reason, const Layout& layout) {
  const std::string& text = reason.text;
  const std::string task = id_of(reason.key, layout);
  const std::string until = reason.until ? format_rfc3339(*reason.until) : std::string{};
  const auto and_task = [&](const char* what) {
    return reason.key.empty() ? std::string{} : fmt::format("; task {} {}", task, what);
  };
  switch (reason.kind) {
    case Kind::kUnknownTask:
      return {"unknown_task",
              "no such task waits or runs; \"lictor show\" tells whether it is done or dead"};
    case Kind::kReading:
      return {"reading", "the leader has just taken over and is still reading the tasks"};
    case Kind::kNotLeading:
      return {"not_leading", "this member does not lead the queue, or cannot prove that it does"};
    case Kind::kDraining:
      return {"draining", "the leader is stepping down; the next leader continues"};
    case Kind::kPaused:
      return {"paused", fmt::format("the queue is paused{}{}; \"lictor resume\" ends the pause",
                                    text.empty() ? "" : " by ", text)};
    case Kind::kRunning:
      return {"running", fmt::format("it is running, attempt {}, since {}{}{}{}", reason.count,
                                     format_rfc3339(reason.since.value_or(WallTime{})),
                                     progress_text(reason.progress),
                                     text.empty() ? "" : ", and is being stopped: ", text)};
    case Kind::kClaiming:
      return {"claiming", "its claim is on the way to Consul"};
    case Kind::kPrefetched:
      if (reason.until)
        return {"claimed_ahead", "it is claimed ahead, and starts when it is due, at " + until};
      return {"claimed_ahead", fmt::format("it is claimed ahead and waits for one of {} slots{}",
                                           reason.count, and_task("is running"))};
    case Kind::kSettling:
      return {"ending", "its job has ended, and the result is being written"};
    case Kind::kBurying:
      return {"dying", "it is on its way to the dead letters"};
    case Kind::kTooLarge:
      return {"too_large", "its record is too large to be claimed (" + text +
                               "); write it again, smaller, or delete it"};
    case Kind::kUnnameable:
      return {"unnameable",
              "its key is not valid UTF-8, and Consul lists it under other bytes; delete it by the "
              "bytes it was written with, and write the task under another key"};
    case Kind::kNoExecutor:
      return {"no_executor", "the leader has no executor for type \"" + excerpt(text) +
                                 R"("; configure one, or "*" for all types)"};
    case Kind::kCannotStart:
      if (!reason.until) {
        return {"cannot_start",
                fmt::format("task {} is tried first, since the last job of its executor could not "
                            "be started: {}",
                            task, text)};
      }
      return {"cannot_start",
              fmt::format("jobs of its executor cannot be started now; the leader tries again at "
                          "{}: {}",
                          until, text)};
    case Kind::kNotDue:
      return {"not_due", "it is not due until " + until};
    case Kind::kBackoff:
      return {"backoff", fmt::format("attempt {} failed, and it waits until {}{}{}", reason.count,
                                     until, text.empty() ? "" : ": ", text)};
    case Kind::kRefused:
      return {"write_refused",
              fmt::format("Consul refused what was to be written; the next try is at {}: {}", until,
                          text)};
    case Kind::kSerial: {
      std::string words =
          fmt::format("task {} of the same serialKey ({}) has not ended yet", task, text);
      if (reason.count != 0) {
        words += fmt::format(", and {} {} before it", tasks_before(reason.count),
                             reason.count == 1 ? "comes" : "come");
      }
      return {"serial_key", std::move(words)};
    }
    case Kind::kOrder:
      return {"order",
              fmt::format("{} that {} before it; the next is {}", tasks_before(reason.count),
                          reason.count == 1 ? "is due comes" : "are due come", task)};
    case Kind::kConcurrency:
      return {"concurrency", fmt::format("all slots are taken (concurrency {}){}", reason.count,
                                         and_task("is one of them"))};
    case Kind::kTypeSlots:
      return {"type_concurrency",
              fmt::format("all slots of executor \"{}\" are taken (its concurrency is {}){}", text,
                          reason.count, and_task("is one of them"))};
    case Kind::kUnacked:
      return {"max_unacked",
              fmt::format("too many results are not yet written to Consul (max_unacked {})",
                          reason.count)};
    case Kind::kRate:
      return {"rate_limit", "the queue's rate_limit is used up until " + until};
    case Kind::kLastChance:
      return {"last_chance",
              "a task that one more lost owner makes a dead letter starts alone; others start "
              "beside it after 10s" +
                  and_task("is running")};
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
