#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace lictor {

/// The bytes of `fd` from where it stands to its end, but `limit` + 1 at most: more than `limit`
/// means that there are too many. Nothing where reading failed: errno says why. Blocks as `fd`
/// does.
[[nodiscard]] std::optional<std::string> read_up_to(int fd, std::size_t limit);

}  // namespace lictor
