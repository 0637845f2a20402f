#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/config.h"
#include "app/dev.h"
#include "app/try.h"
#include "cli/commands.h"

namespace lictor::app {

struct RunCommand {
  bool once = false;
  bool dry_run = false;
};
struct ShowCommand {
  std::string id;
};
struct MembersCommand {};
struct WhyCommand {
  std::string id;
};
struct StatsCommand {};
struct TopCommand {};
struct CheckCommand {
  bool strict = false;  ///< warnings count as failures
  std::string role;     ///< whose token it is: "daemon", "reader"; empty: by the configuration
};
struct VersionCommand {};

using Command =
    std::variant<RunCommand, cli::SubmitOptions, cli::SubmitManyOptions, cli::ListOptions,
                 ShowCommand, WhyCommand, cli::EventsOptions, StatsCommand, TopCommand,
                 cli::LogsOptions, cli::CancelOptions, cli::RetryOptions, cli::DeadListOptions,
                 cli::DeadShowOptions, cli::DeadPurgeOptions, cli::ScheduleListOptions,
                 cli::ScheduleShowOptions, cli::ScheduleAddOptions, cli::ScheduleRemoveOptions,
                 cli::ScheduleRunOptions, cli::SchedulePauseOptions, cli::ScheduleResumeOptions,
                 cli::ScheduleNextOptions, cli::PauseOptions, cli::ResumeOptions,
                 cli::LeaderOptions, MembersCommand, cli::DrainOptions, cli::UndrainOptions,
                 CheckCommand, cli::BenchOptions, VersionCommand, DevCommand, TryCommand>;

/// What was asked for.
struct Invocation {
  Overrides overrides;
  std::optional<std::string> queue;
  bool json = false;
  Command command;
};

/// The only output of the command: a help text, or an error in the arguments.
struct Answer {
  int exit_code = 0;
  std::string text;  ///< to standard output; with an exit code, to standard error
};

/// Reads the arguments, without the program's name. Reads standard input or a file where an
/// argument asks for it (--para-json). No exception leaves it.
[[nodiscard]] std::variant<Invocation, Answer> parse_command_line(
    const std::vector<std::string>& arguments);

}  // namespace lictor::app
