#pragma once

// Shared by several commands.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace lictor::cli {

/// "no such tasks in queue "q"": none fits `filter`.
[[nodiscard]] std::string none_text(const Client& client, const TaskFilter& filter);

/// The state that --state names; std::nullopt for an empty text. Errors: kInvalid.
[[nodiscard]] Result<std::optional<TaskState>> state_argument(const std::string& text);

/// Prints the tasks that `filter` lets through, `limit` at most (0: all), as a table or as JSON.
[[nodiscard]] Result<int> print_list(const Client& client, const TaskFilter& filter,
                                     std::size_t limit, bool only_retrying = false);

/// Notes that nobody leads the queue now; if nobody ever has, its name may be mistyped. Silent if
/// the token may not read the leader key.
void note_if_not_led(const Client& client);

/// The first reason why the task does not run: the leader's, else the one that Consul shows.
[[nodiscard]] std::string reason_of(const Client& client, const TaskInfo& task);

/// Why there is no task `id`, if that names a tick of a stored schedule; else empty.
[[nodiscard]] std::vector<std::string> tick_reasons(const Client& client, const std::string& id);

/// The task, if it waits or runs; else its newest end. `found`: of client::show_task().
[[nodiscard]] const TaskInfo& newest(const std::vector<TaskInfo>& found);

/// "paused by me@host, 5m ago: deployment"; empty: it is not paused.
[[nodiscard]] std::string pause_text(const PauseState& state);

/// Prints everything about the tasks of the id: dead letters alone, or all of them. Errors:
/// kNotFound, there is none.
[[nodiscard]] Result<int> show_task(const Client& client, const std::string& id, bool only_dead);

}  // namespace lictor::cli
