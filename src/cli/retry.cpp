#include "base/try.h"
#include "cli/bulk.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

// What is refused is a dead letter; how it was asked for was right.
int told(int code) { return code == kUsage ? kFailed : code; }

}  // namespace

Result<int> retry(const Client& client, const RetryOptions& options) {
  if (!options.all) {
    const auto result = each_of(options.ids, [&](const std::string& id) {
      return client.api.retry(id, options.drop_expiry);
    });
    return told(tell_bulk(client, result, "retried", [](const TaskInfo& letter) {
      return "dead letter " + letter.id + " is a waiting task again";
    }));
  }
  note_odd_reason(client, options.reason);
  TaskFilter filter;
  filter.type = options.type;
  filter.reason = options.reason;
  LICTOR_TRY(const auto result,
             client.api.retry_all(filter, options.drop_expiry, progress_of(client)));
  return told(tell_bulk(client, result, "retried", {}));
}

}  // namespace lictor::cli
