#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lictor/result.h"

namespace lictor {

/// Reads `fd` from its position to its end, at most `limit` + 1 bytes: more than `limit` means that
/// the file is too large. Nothing if reading failed; errno says why. Blocks if `fd` does.
[[nodiscard]] std::optional<std::string> read_up_to(int fd, std::size_t limit);

/// All of the file at `path`, whose purpose is `what` for messages: at most `limit` bytes. Does not
/// wait for the writer of a FIFO. Errors: kInvalid, with what, path and the way out.
[[nodiscard]] Result<std::string> read_small_file(const std::string& what, const std::string& path,
                                                  std::size_t limit = 4U << 20U);

}  // namespace lictor
