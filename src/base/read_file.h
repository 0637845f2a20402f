#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lictor/result.h"

namespace lictor {

/// Reads `fd` from its position to its end, at most `limit` + 1 bytes: more than `limit` means that
/// the file is too large. std::nullopt if reading failed; errno says why. Blocks if `fd` does.
[[nodiscard]] std::optional<std::string> read_up_to(int fd, std::size_t limit);

/// Names the file behind `fd` on this boot of this host. A copy has another name, also on a cloned
/// host once that has booted.
[[nodiscard]] std::string file_identity(int fd);

/// The whole file at `path`, at most `limit` bytes; `what` names its purpose in messages. Does not
/// wait for the writer of a FIFO. Errors: kFailed, with what, path and the way out.
[[nodiscard]] Result<std::string> read_small_file(const std::string& what, const std::string& path,
                                                  std::size_t limit = 4U << 20U);

/// Whether `text` can be an access token in a header: anything else, a line break above all, would
/// let it write headers of its own.
[[nodiscard]] bool is_access_token(std::string_view text);

/// The only access token in the file; spaces and line ends around it don't count. Errors: kFailed,
/// the file is missing or empty; kInvalid, it holds something else. The message never contains the
/// token.
[[nodiscard]] Result<std::string> read_token_file(const std::string& path);

}  // namespace lictor
