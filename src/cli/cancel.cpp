// Withdraws tasks. The command deletes keys; the daemon that runs a job stops the job when its
// watch shows that. So a success says that the task is gone from the queue, and a daemon that does
// not answer is named: its job may run on for a while.

#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/try.h"
#include "cli/bulk.h"
#include "cli/command_table.h"
#include "cli/listing.h"
#include "cli/process.h"
#include "client/change.h"
#include "client/task_info.h"
#include "cluster/admin_client.h"

namespace lictor::cli {
namespace {

struct CancelOptions {
  Selection selection;
  bool yes = false;  // do not ask
  std::string state;
  std::string type;
};

std::string cancelled_line(const TaskInfo& task) {
  const std::string start = "cancelled task " + task.id + ", which was ";
  if (task.state == TaskState::kRunning) {
    return start + "running on " + task.node + "; that daemon stops its job when it sees this";
  }
  if (task.state == TaskState::kOrphan) {
    return start + "claimed by " + (task.node.empty() ? "an unknown daemon" : task.node) +
           ", which does not lead";
  }
  return start + std::string{client::state_text(task.state)};
}

// The daemon that runs a job stops it when Consul reports that the task is gone. Warn if that
// daemon does not answer.
void report_silent(const Client& client, const BulkResult& result) {
  std::set<std::string> nodes;
  for (const TaskInfo& task : result.tasks) {
    if (task.state == TaskState::kRunning) nodes.insert(task.node);
  }
  for (const std::string& node : nodes) {
    const std::string doubt = cluster::unresponsive_reason(
        cluster::read_member(client.store, client.layout, node, cluster::kGlance));
    if (doubt.empty()) continue;
    client.console.report_error(fmt::format(
        "{} has to stop the jobs of these tasks, but {}; if it is dead, its programs have ended "
        "with it; if it is frozen or cut off, they end with its lease at the latest",
        node, doubt));
  }
}

// Without the right to write below done/, a waiter takes a cancelled task for a finished one.
void note_if_unseen(const Client& client, const BulkResult& result) {
  if (result.tasks.empty()) return;
  const std::string& done = client.layout.done_prefix;
  const auto writable = client.store.writable({done + result.tasks.front().id});
  if (!writable || writable->front()) return;
  client.console.report_note("the token may not write " + done +
                             ", so \"submit --wait\" takes the task for a finished one");
}

Result<int> cancel(const Client& client, const CancelOptions& options) {
  BulkResult result;
  if (!options.selection.all) {
    result = client::change_each(options.selection.ids,
                                 [&](const std::string& id) { return client.api.cancel(id); });
    note_if_unseen(client, result);
  } else {
    LICTOR_TRY(const auto state, state_argument(options.state));
    const TaskFilter filter{state, options.type};
    if (!options.yes) {
      LICTOR_TRY(const auto listed, client.api.list(filter));
      std::size_t count = 0;
      for (const TaskInfo& task : listed.tasks) count += task.state < TaskState::kUnnameable;
      const std::string question =
          fmt::format("cancel {} of queue \"{}\"?", counted(count, "task"), client.queue);
      LICTOR_TRY(const bool yes, confirmed(client, question, true));
      if (!yes) return kFailed;
    }
    LICTOR_TRY(result, client.api.cancel_all(filter, progress_of(client)));
    if (result.tasks.empty() && result.refused.empty()) {
      client.console.note(none_text(client, filter));
    }
  }
  const int code = print_bulk(
      client, result, "cancelled",
      options.selection.all ? std::function<std::string(const TaskInfo&)>{} : cancelled_line);
  report_silent(client, result);
  // Ignore signals: without a history this process lives two more seconds to delete its entries
  // (CancelMarks); an entry that it doesn't delete would stay for ever.
  catch_signals(SecondSignal::kIgnored);
  if (auto flushed = client.console.flush(); !flushed) return tl::unexpected(flushed.error());
  return code;
}

}  // namespace

void add_cancel(Commands& to) {
  auto [command, options] = to.add(
      "cancel", "Withdraw tasks; stop their jobs",
      R"(Deletes the task in any state. The leader then stops the job of a running task: TERM, and KILL after
kill_grace. The exit code is 3 if the task does not exist. With --all, a task that has ended in the
meantime is no failure.

Examples:
  lictor cancel 42 43
  lictor cancel --all --type Notify
  lictor cancel --all --state scheduled --yes
)",
      cancel);
  const Option all = add_selection(command, options.selection, "The tasks' ids",
                                   "All tasks that the filters let through");
  command
      .text("--state", options.state, "Only those that are waiting, scheduled or running", "STATE")
      .needs(all);
  command.text("--type", options.type, "Only those of this type", "TYPE").needs(all);
  command.flag("--yes", options.yes, "Do not ask").needs(all);
}

}  // namespace lictor::cli
