#pragma once

// The tasks that `lictor bench` and tests/bench measure with.
//
// "lictor bench" puts figures of lictor beside those of Consul alone, from one run on one machine:
// a figure by itself says more about the disk than about lictor. Each measurement has a Site: a
// random prefix below lictor-bench/, a daemon of this program with an executor that does nothing,
// and a folder; its destructor removes them. The raw side does the same writes by transactions of
// the same shape. Where lictor may batch, the best of 1, 2 and 4 connections counts.
//
//   drain         paused, loaded, daemon started; resumed --> the last key is gone
//   round trip    one task written --> its key is gone; the median of 50

#include <cstddef>
#include <cstdint>
#include <string>

namespace lictor::cli {

/// The record of a task of about 200 bytes; `i` gives its order and its id. `due_ms` since the
/// epoch; 0: at once.
[[nodiscard]] std::string task_record(std::size_t i, const std::string& type,
                                      std::int64_t due_ms = 0, std::size_t padding = 0);
/// `prefix` and eight digits: the keys have the order of the tasks.
[[nodiscard]] std::string task_key(const std::string& prefix, std::size_t i);

}  // namespace lictor::cli
