// Dead letters become waiting tasks again, each by one transaction (client/queue.h).

#include <functional>

#include "base/try.h"
#include "cli/bulk.h"
#include "cli/command_table.h"
#include "cli/listing.h"
#include "client/change.h"

namespace lictor::cli {
namespace {

struct RetryOptions {
  Selection selection;
  bool drop_expiry = false;
  DeadOptions dead;
};

Result<int> retry(const Client& client, const RetryOptions& options) {
  BulkResult result;
  std::function<std::string(const TaskInfo&)> line;
  if (options.selection.all) {
    const TaskFilter filter = dead_filter(client, options.dead);
    LICTOR_TRY(result, client.api.retry_all(filter, options.drop_expiry, progress_of(client)));
    if (result.tasks.empty() && result.refused.empty()) {
      client.console.note(none_text(client, filter));
    }
  } else {
    result = client::change_each(options.selection.ids, [&](const std::string& id) {
      return client.api.retry(id, options.drop_expiry);
    });
    line = [](const TaskInfo& letter) {
      return "dead letter " + letter.id + " is a waiting task again";
    };
  }
  // The usage was right: kInvalid is the dead letter's fault.
  const int code = print_bulk(client, result, "retried", line);
  return code == kUsage ? kFailed : code;
}

}  // namespace

void add_retry(Commands& to) {
  auto [command, options] = to.add(
      "retry", "Make dead letters waiting tasks again",
      R"(A dead letter becomes a waiting task again, with its producer's record and no attempts. If a task has
several dead letters, the newest is taken; "lictor dead list" shows the names of the others, such as
42,5710. A task of the same id that waits or runs is left as it is (exit code 1).

Examples:
  lictor retry 42
  lictor retry 42,5710
  lictor retry --all --type CreateTableSpace
  lictor retry --all --reason expired --drop-expiry
)",
      retry);
  const Option all = add_selection(command, options.selection, "The tasks' ids",
                                   "All dead letters that the filters let through");
  add_dead_options(command, options.dead, &all);
  command.flag("--drop-expiry", options.drop_expiry, "Remove expireAt");
}

}  // namespace lictor::cli
