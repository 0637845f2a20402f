#pragma once

// The tasks that `lictor bench` and tests/bench measure with.

#include <cstddef>
#include <cstdint>
#include <string>

namespace lictor::cli {

/// The record of a task of about 200 bytes; `i` is its place in the order and in its id. `due_ms`
/// since the epoch; 0: at once.
[[nodiscard]] std::string task_record(std::size_t i, const std::string& type,
                                      std::int64_t due_ms = 0, std::size_t padding = 0);
/// `prefix` and eight digits: the keys have the order of the tasks.
[[nodiscard]] std::string task_key(const std::string& prefix, std::size_t i);

}  // namespace lictor::cli
