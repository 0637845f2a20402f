#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/queue.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::client {

/// The dead letters of the task `id`, the oldest first: dead/<id>, dead/<id>~2, ...
[[nodiscard]] Result<std::vector<TaskInfo>> dead_letters_of(const Queue& queue,
                                                            const std::string& id);

/// The producer's record in a dead letter, to be tried again.
/// Errors: kInvalid, the letter holds no task, or one whose expireAt has passed.
[[nodiscard]] Result<std::string> retried_record(std::string_view letter, WallTime now,
                                                 bool drop_expiry);

/// The id of its task: "x" for "x~2", unless the record says that its id is "x~2".
[[nodiscard]] std::string task_of_letter(const TaskInfo& letter);

}  // namespace lictor::client
