#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/try.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

// What the switch is now, and whether we turned it.
Result<int> tell(const Client& client, bool changed) {
  LICTOR_TRY(const auto now, client.api.paused());
  if (client.json) {
    client.console.print(json_document(
        {{"queue", client.queue}, {"changed", changed}, {"paused", pause_json(now)}}));
    return kDone;
  }
  const std::string queue = "queue \"" + client.queue + "\" is ";
  if (now.paused) {
    client.console.print_line(queue + (changed ? "" : "already ") + pause_text(now) +
                              (changed ? "; running jobs go on, no new tasks are started" : ""));
  } else {
    client.console.print_line(queue + (changed ? "resumed" : "not paused"));
  }
  note_if_never_led(client);
  return kDone;
}

}  // namespace

Result<int> pause(const Client& client, const PauseOptions& options) {
  LICTOR_TRY(const auto changed, client.api.pause(options.reason));
  return tell(client, changed);
}

Result<int> resume(const Client& client, const ResumeOptions&) {
  LICTOR_TRY(const auto changed, client.api.resume());
  return tell(client, changed);
}

}  // namespace lictor::cli
