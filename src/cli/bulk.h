#pragma once

// What the commands that change many tasks have in common.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace lictor::cli {

/// Says what became of the tasks, and returns the exit code: that of the first refusal, but that
/// Consul went where it did.
/// `done`: "cancelled". `line` says it of one, and is empty where only the count is told.
[[nodiscard]] int tell_bulk(const Client& client, const BulkResult& result, const std::string& done,
                            const std::function<std::string(const TaskInfo&)>& line);

/// Each id by itself; what is refused does not keep the others. Where Consul does not answer, the
/// rest is not tried.
[[nodiscard]] BulkResult each_of(const std::vector<std::string>& ids,
                                 const std::function<Result<TaskInfo>(const std::string&)>& change);

/// Asks before what cannot be taken back. False: the answer was no. Errors: kInvalid, nobody can be
/// asked, and `must_ask`.
[[nodiscard]] Result<bool> confirmed(const Client& client, const std::string& question,
                                     bool must_ask);

/// Says so where `reason` is none that a dead letter of this version has; empty: there is no need.
void note_odd_reason(const Client& client, const std::string& reason);

/// A line on a terminal: "1000 of 5000 tasks".
[[nodiscard]] Progress progress_of(const Client& client);

}  // namespace lictor::cli
