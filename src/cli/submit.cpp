// Writes one task and, with --wait, sees it to its end. --ndjson is submit_many.cpp.
//
//   flags --> record --(--wait: may its end be seen?)--> write --> print the id --> wait --> end
//                |                                         |
//                +-- interrupted: "not written"            +-- interrupted: "unknown whether"
//
// The id is printed and flushed before the wait, so that a script that is interrupted can look the
// task up. At each step a signal prints what is certain (LastWords): a producer must know whether
// it may send the task again.
//
// After kMaxWriteTime the command prints why a task still waits: the queue may be paused, or nobody
// may lead it.

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/new_task.h"
#include "cli/process.h"
#include "client/task_info.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kAboutSubmit =
    R"(The id is printed. A task that exists already is left as it is (exit code 1).

With --wait the exit code is 0 if the task is done, 1 if it is dead and 6 if it was cancelled.
In a queue without history, a task that was deleted, or cancelled by "cancel --all", counts as done.
With a history, the task's result is printed as JSON after the id.

With --ndjson each line is a record: {"taskId": "42", "taskType": "Notify", "taskPara": {}}.
A missing taskId or taskTime is generated; a missing taskType is TYPE. Tasks without a taskTime
start in the order of the lines: the leader never finds a line before earlier lines. With
--any-order it may, which is faster. A line waits at most 0.2 s for the lines after it. The exit
code is 1 if a line was refused, and 4 if Consul stopped answering: lines whose result is unknown
are named, and no line after them was sent. Ctrl-C finishes the requests under way and reports the
last line.

Examples:
  lictor submit CreateTableSpace --para instanceId=db7 --para initSize:=8000
  lictor submit Notify --para-json '{"to": ["ops"]}' --in 10m
  lictor submit Report --at 2026-11-21T09:30:00Z --serial-key reports --id report-7
  lictor submit Backup --para host=db7 --wait --wait-timeout 1h && echo done
  lictor submit Notify --ndjson tasks.ndjson
  jq -c .tasks[] export.json | lictor submit --ndjson -
)";

struct SubmitOptions {
  TaskText task;
  bool wait = false;
  std::optional<Duration> wait_timeout;
  std::optional<std::string> ndjson_file;  // many tasks, and `task` gives their type at most
  bool any_order = false;
};

// How long a task may wait before its reason is printed.
constexpr Duration kMaxWriteTime = std::chrono::seconds{3};

// Prints a document about the task, with `more` at its end.
void print_task(const Client& client, const client::NewRecord& task, const ordered_json& more) {
  ordered_json out{{"id", task.id}, {"key", client.layout.task_key(task.id)}};
  out.update(more);
  print_json(client, std::move(out));
}

ordered_json result_of(const TaskInfo& done) {
  return parse_json(done.result) ? ordered_json::parse(done.result) : ordered_json{};
}

// Exit codes: kDone, kFailed (dead, or not ended in time), kCancelled.
Result<int> print_ending(const Client& client, const client::NewRecord& task,
                         const Ending& ending) {
  const TaskInfo& info = ending.task;
  if (ending.how == Ending::How::kTimedOut) {
    if (client.json) {  // the task was written, so print its id
      print_task(client, task,
                 {{"state", info.id.empty() ? ordered_json{} : client::state_name(info.state)}});
    }
    std::string text = "task " + task.id + " has not ended within --wait-timeout";
    if (!info.id.empty()) text += " (" + client::described(info) + ")";
    return fail(ErrorCode::kFailed,
                text + "; it goes on; see \"lictor show " + shell_argument(task.id) + '"');
  }
  if (ending.how == Ending::How::kCancelled) {
    if (client.json) {
      print_task(client, task, {{"state", "cancelled"}, {"cancelled_by", info.node}});
    }
    client.console.report_error("task " + task.id + " was cancelled by " + info.node);
    return kCancelled;
  }
  const bool dead = ending.how == Ending::How::kDead;
  const bool has_result = ending.how == Ending::How::kDone && !info.result.empty();
  if (client.json) {
    ordered_json out{{"state", dead ? "dead" : "done"}};
    if (has_result) out["result"] = result_of(info);
    if (dead) {
      out.update({{"reason", info.reason},
                  {"error", info.error},
                  {"attempts", info.attempt},
                  {"output_tail", info.output_tail}});
    }
    print_task(client, task, out);
  } else if (has_result) {
    client.console.print(json_document(result_of(info)));
  }
  if (!dead) return kDone;

  std::string text =
      "task " + task.id + " is dead after " + counted(info.attempt, "attempt") + ": " + info.reason;
  if (!info.error.empty() && info.error != info.reason) text += ": " + info.error;
  client.console.report_error(text);
  if (!client.json && !info.output_tail.empty()) {
    std::string tail = info.output_tail;
    tail.erase(tail.find_last_not_of('\n') + 1);
    client.console.note_lines("the end of its output:\n" + tail + '\n');
  }
  return kFailed;
}

// Waits in two parts: a short one, after which the reason for waiting is printed, then the rest.
// Shows the task's states on a terminal meanwhile.
Result<Ending> follow(const Client& client, const Submitted& task,
                      const std::optional<Duration>& timeout) {
  WaitOptions options;
  options.timeout = timeout;
  options.index = task.index;
  options.trouble = [&](const Error& error) {
    client.console.report_note(error.message + "; waiting for Consul");
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
      client.console.report_note("task " + task.id + ": " + reason_of(client, ending->task) +
                                 "; still waiting");
    }
    options.timeout = timeout ? std::optional{*timeout - kMaxWriteTime} : std::nullopt;
  }
  return client.api.wait(task.id, options);
}

Result<int> submit(const Client& client, const SubmitOptions& options) {
  if (options.ndjson_file) {
    return submit_many(client, *options.ndjson_file, options.task.type,
                       options.any_order ? SubmitOrder::kAny : SubmitOrder::kAsGiven);
  }
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
  return print_ending(client, task, *ending);
}

}  // namespace

void add_submit(Commands& to) {
  auto [command, options] = to.add("submit", "Write a task, or many", kAboutSubmit, submit,
                                   {.queue = Command::Queue::kMayBeNew});
  TaskText& task = options.task;
  command.argument("TYPE", task.type, "The kind of task; picks the executor");
  const std::size_t first_of_one = command.size();
  command.text("--id", task.id, "The task's id (default: a new one, ordered by time)", "ID");
  add_parameters(command, task);
  const Option at = command.text(
      "--at", task.at, "Not before this time: RFC 3339, or seconds since the epoch", "TIME");
  command.duration("--in", task.in, "Not before this time has passed").excludes(at);
  const Option expire_at = command.text("--expire-at", task.expire_at,
                                        "A dead letter if not started by then: as --at", "TIME");
  command.duration("--expire-in", task.expire_in, "A dead letter if not started by then")
      .excludes(expire_at);
  command.text("--task-time", task.task_time, "The place in the order (default: now)", "TIME");
  add_limits(command, task);
  const Option wait = command.flag("--wait", options.wait, "Wait until the task is done or dead");
  command
      .duration("--wait-timeout", options.wait_timeout, "Stop waiting after this, with exit code 1")
      .needs(wait);
  const std::vector<Option> of_one = command.from(first_of_one);
  const Option ndjson =
      command
          .text("--ndjson", options.ndjson_file,
                "Write many: one record a line, from a file or, with -, from standard input",
                "FILE|-")
          .excludes(of_one);
  command
      .flag("--any-order", options.any_order,
            "Faster; a leader may find a line before earlier lines")
      .needs(ndjson);
  command.then([&read = options]() -> Result<void> {
    if (read.ndjson_file) return {};
    if (read.task.type.empty()) {
      return fail(ErrorCode::kInvalid, "TYPE is required: the kind of task");
    }
    return read_parameters(read.task);
  });
}

}  // namespace lictor::cli
