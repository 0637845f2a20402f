#include <functional>
#include <set>
#include <string>

#include "base/printable.h"
#include "base/try.h"
#include "cli/bulk.h"
#include "cli/listing.h"
#include "cli/member_list.h"
#include "cli/process.h"
#include "client/task_info.h"

namespace lictor::cli {
namespace {

std::string line_of(const TaskInfo& task) {
  const std::string start = "cancelled task " + task.id + ", which was ";
  switch (task.state) {
    case TaskState::kRunning:
      return start + "running on " + task.node + ", which stops its job when it sees this";
    case TaskState::kOrphan:
      return start + "claimed by " + (task.node.empty() ? "nobody known" : task.node) +
             ", which does not lead";
    default:
      return start + std::string{client::state_text(task.state)};
  }
}

// The daemon that runs a job stops it when Consul reports that the task is gone. Warn if that daemon
// does not answer.
void complain_of_silent(const Client& client, const BulkResult& result) {
  std::set<std::string> nodes;
  for (const TaskInfo& task : result.tasks) {
    if (task.state == TaskState::kRunning) nodes.insert(task.node);
  }
  for (const std::string& node : nodes) {
    const auto member = read_member(client.store, client.layout, node);
    if (!member) continue;
    const std::string doubt = doubt_of(*member, pulse_of(*member, kGlance));
    if (doubt.empty()) continue;
    client.console.complain(node + " is to stop what it runs of this, but " + doubt +
                            "; if it is dead, its programs have ended with it; if it is frozen or "
                            "cut off, they end with its lease at the latest");
  }
}

Result<int> told(const Client& client, const BulkResult& result,
                 const std::function<std::string(const TaskInfo&)>& line) {
  const int code = tell_bulk(client, result, "cancelled", line);
  complain_of_silent(client, result);
  return code;
}

Result<int> cancel_all(const Client& client, const CancelOptions& options) {
  LICTOR_TRY(const auto state, state_argument(options.state));
  TaskFilter filter;
  filter.state = state;
  filter.type = options.type;
  if (!options.yes) {
    LICTOR_TRY(const auto listed, client.api.list(filter));
    std::size_t count = 0;
    for (const TaskInfo& task : listed.tasks) count += task.state < TaskState::kUnnameable ? 1 : 0;
    LICTOR_TRY(const auto yes,
               confirmed(client,
                         "cancel " + counted(count, "task") + " of queue \"" + client.queue + "\"?",
                         true));
    if (!yes) return kFailed;
  }
  LICTOR_TRY(const auto result, client.api.cancel_all(filter, progress_of(client)));
  return told(client, result, {});
}

}  // namespace

Result<int> cancel(const Client& client, const CancelOptions& options) {
  if (options.all) return cancel_all(client, options);
  const auto result =
      each_of(options.ids, [&](const std::string& id) { return client.api.cancel(id); });
  return told(client, result, line_of);
}

}  // namespace lictor::cli
