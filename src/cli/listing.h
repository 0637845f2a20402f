#pragma once

// What commands have in common.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace lictor::cli {

/// "no dead letters in queue "q"": none fits `filter`.
[[nodiscard]] std::string none_dead(const Client& client, const TaskFilter& filter);

/// "; the types that there are: Mail (3), ..." if those that `all` lets through lack `type`, else
/// empty.
[[nodiscard]] std::string types_hint(const Client& client, const TaskFilter& all,
                                     const std::string& type);

/// The state that --state names; nothing for an empty text. Errors: kInvalid.
[[nodiscard]] Result<std::optional<TaskState>> state_argument(const std::string& text);

/// Prints the tasks that `filter` lets through, `limit` at most (0: all), as a table or as JSON.
[[nodiscard]] Result<int> print_list(const Client& client, const TaskFilter& filter,
                                     std::size_t limit, bool only_retrying = false);

/// Notes that no daemon has ever led the queue: its name may be mistyped. Silent if the token may
/// not read the leader key.
void note_if_never_led(const Client& client);
/// Also notes that nobody leads the queue now.
void note_if_not_led(const Client& client);

/// The first reason why the task does not run: the leader's, else as far as Consul knows.
[[nodiscard]] std::string reason_of(const Client& client, const TaskInfo& task);

/// What a schedule knows of the tick that the id of a task which does not exist names. Empty: it
/// names no tick of a stored schedule.
[[nodiscard]] std::vector<std::string> tick_reasons(const Client& client, const std::string& id);

/// "paused by me@host, 5m ago: deployment"; empty: it is not.
[[nodiscard]] std::string pause_text(const PauseState& state);

/// Prints the result and returns the exit code: kUnreachable if Consul stopped answering, else that
/// of the first refusal. `done`: "cancelled". `line` words one task; empty: print only the count.
[[nodiscard]] int tell_bulk(const Client& client, const BulkResult& result, const std::string& done,
                            const std::function<std::string(const TaskInfo&)>& line);

/// Changes each id by itself. A refusal does not stop the others; a Consul that does not answer
/// does.
[[nodiscard]] BulkResult each_of(const std::vector<std::string>& ids,
                                 const std::function<Result<TaskInfo>(const std::string&)>& change);

}  // namespace lictor::cli
