// Pausing a queue, and resuming it.

#include "base/clock.h"
#include "base/printable.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"

namespace lictor::cli {
namespace {

struct PauseOptions {
  std::string reason;
};

// `changed`: this command changed it.
Result<int> print_pause(const Client& client, bool changed) {
  LICTOR_TRY(const auto now, client.api.paused());
  if (client.json) {
    print_json(client, {{"changed", changed}, {"paused", pause_json(now)}});
    return kDone;
  }
  const std::string queue = "queue \"" + client.queue + "\" is ";
  if (now.paused) {
    client.console.print_line(queue + (changed ? "" : "already ") + pause_text(now) +
                              (changed ? "; running jobs go on, no new tasks are started" : ""));
  } else {
    client.console.print_line(queue + (changed ? "resumed" : "not paused"));
  }
  note_if_not_led(client);
  return kDone;
}

Result<int> pause(const Client& client, const PauseOptions& options) {
  LICTOR_TRY(const auto changed, client.api.pause(options.reason));
  if (!changed && !options.reason.empty()) {
    client.console.note("the reason was not written: \"lictor resume\", then pause again with it");
  }
  return print_pause(client, changed);
}

Result<int> resume(const Client& client) {
  LICTOR_TRY(const auto changed, client.api.resume());
  return print_pause(client, changed);
}

}  // namespace

std::string pause_text(const PauseState& state) {
  if (!state.paused) return {};
  std::string text = "paused";
  if (!state.by.empty()) text += " by " + state.by;
  if (state.at) text += (state.by.empty() ? " " : ", ") + relative_time(*state.at, wall_now());
  if (!state.reason.empty()) text += ": " + state.reason;
  return text;
}

void add_pause(Commands& to) {
  auto [command, options] =
      to.add("pause", "Start no more tasks until resumed",
             R"(Running jobs go on; no new tasks are started until "lictor resume".

Examples:
  lictor pause --reason 'the database is being moved'
  lictor pause --queue oracle
)",
             pause);
  command.text("--reason", options.reason, "Why, shown to others", "TEXT");
}

void add_resume(Commands& to) {
  to.add("resume", "Start tasks again", R"(Examples:
  lictor resume
  lictor resume --json | jq .changed
)",
         resume);
}

}  // namespace lictor::cli
