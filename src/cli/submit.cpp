#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/random.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/json_output.h"
#include "cli/printable.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

ordered_json document(const Client& client, const NewTask& task) {
  return {{"queue", client.queue}, {"id", task.id}, {"key", client.layout.task_key(task.id)}};
}

int tell_ending(const Client& client, const NewTask& task, const Ending& ending) {
  if (client.json) {
    ordered_json told = document(client, task);
    told["state"] = ending.dead ? "dead" : "done";
    if (ending.dead) {
      told["reason"] = ending.dead->reason;
      told["error"] = ending.dead->error;
      told["attempts"] = ending.dead->attempt;
      told["output_tail"] = ending.dead->output_tail;
    }
    client.console.print(json_document(told));
  }
  if (!ending.dead) return kDone;

  const TaskView& dead = *ending.dead;
  std::string text = "task " + printable(task.id) + " is dead after " +
                     counted(dead.attempt, "attempt") + ": " + printable(dead.reason);
  if (!dead.error.empty() && dead.error != dead.reason) text += ": " + printable(dead.error);
  client.console.complain(text);
  if (!client.json && !dead.output_tail.empty()) {
    std::string tail = printable(dead.output_tail, true);
    tail.erase(tail.find_last_not_of('\n') + 1);
    client.console.note("the end of its output:\n" + tail);
  }
  return kFailed;
}

}  // namespace

Result<int> submit(const Client& client, const SubmitOptions& options) {
  TaskIds ids{random_seed()};
  const auto task = new_task(options.task, wall_now(), ids);
  if (!task) return tl::unexpected(task.error());
  const std::string key = client.layout.task_key(task->id);
  if (options.wait) {
    // Told now, before anything is written, and not when the task has ended.
    const auto letter = client.store.get(client.layout.dead_key(key, 1));
    if (!letter && letter.error().code == ErrorCode::kPermissionDenied) {
      return fail(letter.error().code,
                  "--wait could not tell how the task ends, so it was not written: " +
                      letter.error().message);
    }
  }
  const auto created = client.store.create({{key, task->record}});
  if (!created) {
    Error error = created.error();
    if (error.code == ErrorCode::kTimeout) {
      // Only whoever knows the task knows whether it may be done twice.
      error.message += "; \"lictor show " + printable(task->id) + "\" tells; --id " +
                       printable(task->id) + " writes it again, unless it is there";
    }
    return tl::unexpected(std::move(error));
  }
  if (!created->existing.empty()) {
    return fail(ErrorCode::kConflict, "task " + printable(task->id) +
                                          " exists already in queue \"" + client.queue +
                                          "\" and was left as it is; choose another --id");
  }
  // The id comes first: whoever is interrupted while waiting has it.
  if (!client.json) {
    client.console.print(task->id + '\n');
  } else if (!options.wait) {
    client.console.print(json_document(document(client, *task)));
  }
  if (auto flushed = client.console.flush(); !flushed) {
    flushed.error().message += "; task " + printable(task->id) + " was written all the same";
    return tl::unexpected(std::move(flushed.error()));
  }
  if (!options.wait) return kDone;
  const auto ending = follow(client, task->id, created->index, options.wait_timeout);
  if (!ending) return tl::unexpected(ending.error());
  return tell_ending(client, *task, *ending);
}

}  // namespace lictor::cli
