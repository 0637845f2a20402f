#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

// What the switch is now, and whether we turned it.
Result<int> tell(const Client& client, bool changed) {
  const auto now = client.api.paused();
  if (!now) return tl::unexpected(now.error());
  if (client.json) {
    client.console.print(json_document(
        {{"queue", client.queue}, {"changed", changed}, {"paused", pause_json(*now)}}));
    return kDone;
  }
  const std::string queue = "queue \"" + client.queue + "\" is ";
  if (now->paused) {
    client.console.print_line(queue + (changed ? "" : "already ") + pause_text(*now) +
                              (changed ? "; running jobs go on, no new tasks are started" : ""));
  } else {
    client.console.print_line(queue + (changed ? "resumed" : "not paused"));
  }
  note_if_never_led(client);
  return kDone;
}

}  // namespace

Result<int> pause(const Client& client, const PauseOptions& options) {
  const auto changed = client.api.pause(options.reason);
  if (!changed) return tl::unexpected(changed.error());
  return tell(client, *changed);
}

Result<int> resume(const Client& client, const ResumeOptions&) {
  const auto changed = client.api.resume();
  if (!changed) return tl::unexpected(changed.error());
  return tell(client, *changed);
}

}  // namespace lictor::cli
