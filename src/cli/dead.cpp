#include "base/clock.h"
#include "base/printable.h"
#include "base/try.h"
#include "cli/bulk.h"
#include "cli/listing.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

TaskFilter filter_of(const std::string& type, const std::string& reason,
                     const std::optional<Duration>& older_than) {
  TaskFilter filter;
  filter.state = TaskState::kDead;
  filter.type = type;
  filter.reason = reason;
  if (older_than) {
    filter.before = wall_now() - std::chrono::duration_cast<std::chrono::milliseconds>(*older_than);
  }
  return filter;
}

}  // namespace

Result<int> dead_list(const Client& client, const DeadListOptions& options) {
  note_odd_reason(client, options.reason);
  return print_list(client, filter_of(options.type, options.reason, options.older_than),
                    options.limit);
}

Result<int> dead_purge(const Client& client, const DeadPurgeOptions& options) {
  const TaskFilter filter = filter_of(options.type, options.reason, options.older_than);
  note_odd_reason(client, options.reason);
  if (!options.yes) {
    std::size_t count = options.ids.size();
    if (options.all) {
      LICTOR_TRY(const auto listed, client.api.list(filter));
      count = listed.tasks.size();
    }
    LICTOR_TRY(const auto yes, confirmed(client,
                                         "delete " + counted(count, "dead letter") +
                                             " of queue \"" + client.queue + "\" for good?",
                                         options.all));
    if (!yes) return kFailed;
  }
  if (!options.all) {
    const auto result =
        each_of(options.ids, [&](const std::string& id) { return client.api.purge(id); });
    return tell_bulk(client, result, "purged",
                     [](const TaskInfo& letter) { return "purged dead letter " + letter.id; });
  }
  LICTOR_TRY(const auto result, client.api.purge_all(filter, progress_of(client)));
  return tell_bulk(client, result, "purged", {});
}

}  // namespace lictor::cli
