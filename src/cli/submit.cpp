#include "base/clock.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"
#include "client/task_info.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

// How long a task may wait before its reason is printed.
constexpr Duration kMaxWriteTime = std::chrono::seconds{3};

// Prints a document about the task, with `more` at its end.
void print_task(const Client& client, const client::NewRecord& task, const ordered_json& more) {
  ordered_json told{{"id", task.id}, {"key", client.layout.task_key(task.id)}};
  told.update(more);
  print_json(client, std::move(told));
}

ordered_json result_of(const TaskInfo& done) {
  return wire::parse_json(done.result) ? ordered_json::parse(done.result) : ordered_json{};
}

Result<int> tell_ending(const Client& client, const client::NewRecord& task, const Ending& ending) {
  const TaskInfo& info = ending.task;
  if (ending.how == Ending::How::kTimedOut) {
    if (client.json) {  // the task was written, so print its id
      print_task(client, task,
                 {{"state", info.id.empty() ? ordered_json{} : client::state_name(info.state)}});
    }
    std::string text = "task " + task.id + " has not ended within --wait-timeout";
    if (!info.id.empty()) text += " (" + client::described(info) + ")";
    return fail(ErrorCode::kFailed, text + "; it goes on; see \"lictor show " + task.id + '"');
  }
  if (ending.how == Ending::How::kCancelled) {
    if (client.json) {
      print_task(client, task, {{"state", "cancelled"}, {"cancelled_by", info.node}});
    }
    client.console.complain("task " + task.id + " was cancelled by " + info.node);
    return kCancelled;
  }
  const bool dead = ending.how == Ending::How::kDead;
  const bool has_result = ending.how == Ending::How::kDone && !info.result.empty();
  if (client.json) {
    ordered_json told{{"state", dead ? "dead" : "done"}};
    if (has_result) told["result"] = result_of(info);
    if (dead) {
      told.update({{"reason", info.reason},
                   {"error", info.error},
                   {"attempts", info.attempt},
                   {"output_tail", info.output_tail}});
    }
    print_task(client, task, told);
  } else if (has_result) {
    client.console.print(json_document(result_of(info)));
  }
  if (!dead) return kDone;

  std::string text =
      "task " + task.id + " is dead after " + counted(info.attempt, "attempt") + ": " + info.reason;
  if (!info.error.empty() && info.error != info.reason) text += ": " + info.error;
  client.console.complain(text);
  if (!client.json && !info.output_tail.empty()) {
    std::string tail = info.output_tail;
    tail.erase(tail.find_last_not_of('\n') + 1);
    client.console.note_lines("the end of its output:\n" + tail + '\n');
  }
  return kFailed;
}

// Shows the task's states on a terminal while it waits.
Result<Ending> follow(const Client& client, const Submitted& task,
                      const std::optional<Duration>& timeout) {
  WaitOptions options;
  options.timeout = timeout;
  options.index = task.index;
  options.trouble = [&](const Error& error) {
    client.console.remark(error.message + "; waiting for Consul");
  };
  if (client.console.err_terminal().is_terminal) {
    options.changed = [&](const TaskInfo& info, bool led) {
      client.console.progress(task.id + ": " + client::described(info) +
                              (led ? "" : "; nobody leads the queue now"));
    };
  } else {
    note_if_not_led(client);
  }
  if (!timeout || *timeout > kMaxWriteTime) {
    options.timeout = kMaxWriteTime;
    auto ending = client.api.wait(task.id, options);
    if (!ending || ending->how != Ending::How::kTimedOut) return ending;
    const TaskState state = ending->task.state;
    if (state == TaskState::kWaiting || state == TaskState::kScheduled) {
      client.console.remark("task " + task.id + ": " + reason_of(client, ending->task) +
                            "; still waiting");
    }
    options.timeout = timeout ? std::optional{*timeout - kMaxWriteTime} : std::nullopt;
  }
  return client.api.wait(task.id, options);
}

}  // namespace

Result<int> submit(const Client& client, const SubmitOptions& options) {
  client::TaskIds ids{random_seed()};
  LICTOR_TRY(const auto task, new_task(options.task, wall_now(), ids));
  const std::string key = client.layout.task_key(task.id);
  const std::string name = "task " + task.id;
  std::optional<LastWords> words;
  if (options.wait) {
    words.emplace(program_name() + ": interrupted: " + name + " was not written\n");
    // Fail now, before anything is written, and not when the task has ended.
    const auto letter = client.store.get(client.layout.dead_key(key));
    if (!letter && letter.error().code == ErrorCode::kPermissionDenied) {
      return fail(letter.error().code,
                  "--wait could not see how the task ends, so it was not written: " +
                      letter.error().message);
    }
  }
  words.emplace(program_name() + ": interrupted: unknown whether " + name + " was written\n");
  const auto submitted = client.api.submit_record(task.record);
  if (!submitted) {
    Error error = submitted.error();
    if (error.code == ErrorCode::kConflict) error.message += "; choose another --id";
    return tl::unexpected(std::move(error));
  }
  // Print the id first, in case the wait is interrupted.
  if (!client.json) {
    client.console.print_line(task.id);
  } else if (!options.wait) {
    print_task(client, task, ordered_json::object());
  }
  if (auto flushed = client.console.flush(); !flushed) {
    flushed.error().message += "; " + name + " was written";
    return tl::unexpected(std::move(flushed.error()));
  }
  words.reset();
  if (!options.wait) return kDone;
  if (client.json) words.emplace(program_name() + ": interrupted: " + name + " is written\n");
  const auto ending = follow(client, *submitted, options.wait_timeout);
  client.console.end_progress();
  if (!ending) return tl::unexpected(ending.error());
  return tell_ending(client, task, *ending);
}

}  // namespace lictor::cli
