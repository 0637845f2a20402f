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

/// The record of a task that is to be tried again, from its dead letter: as its producer wrote it.
/// Errors: kInvalid, the letter holds no task, or one whose expireAt has passed.
[[nodiscard]] Result<std::string> retried_record(std::string_view letter, WallTime now,
                                                 bool drop_expiry);

/// Whose dead letter it is: "x" for "x~2", unless the record itself says that its id is "x~2".
[[nodiscard]] std::string task_of_letter(const TaskInfo& letter);

}  // namespace lictor::client
