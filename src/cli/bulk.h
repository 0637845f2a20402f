#pragma once

// Shared by the commands that change many tasks: cancel, retry and dead purge.

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace lictor::cli {

/// IDs or --all; one of them is required.
struct Selection {
  std::vector<std::string> ids;
  bool all = false;
};
/// Adds both. Returns --all, which each filter needs.
[[nodiscard]] Option add_selection(Arguments& to, Selection& selection, const char* ids_what,
                                   const char* all_what);

/// Prints the result and returns the exit code: kUnreachable if Consul stopped answering, else the
/// code of the first refusal. `done`: "cancelled". `line` words one task; empty: print only the
/// count, as in "3 tasks", where `noun` is "task".
[[nodiscard]] int print_bulk(const Client& client, const BulkResult& result,
                             const std::string& done,
                             const std::function<std::string(const TaskInfo&)>& line,
                             const std::string& noun = "task");

/// Asks before a change that cannot be undone. False: the answer was no. Errors: kInvalid, if
/// `must_ask` and there is no terminal.
[[nodiscard]] Result<bool> confirmed(const Client& client, const std::string& question,
                                     bool must_ask);

/// A line on a terminal: "1000 of 5000 tasks".
[[nodiscard]] Progress progress_of(const Client& client);

/// Selects dead letters; an empty field selects all.
struct DeadOptions {
  std::string type, reason;
  std::optional<Duration> older_than;
};
/// --type, --reason and --older-than, which need `all` unless it is null.
void add_dead_options(Arguments& to, DeadOptions& options, const Option* all = nullptr);
[[nodiscard]] TaskFilter dead_filter(const Client& client, const DeadOptions& options);

}  // namespace lictor::cli
