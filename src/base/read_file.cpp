#include "base/read_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lictor {

std::optional<std::string> read_up_to(int fd, std::size_t limit) {
  constexpr std::size_t kPart = 64 * 1024;
  std::string bytes;
  while (bytes.size() <= limit) {
    const std::size_t used = bytes.size();
    const std::size_t room = std::min(kPart, limit + 1 - used);
    bytes.resize(used + room);
    const ssize_t n = ::read(fd, bytes.data() + used, room);
    bytes.resize(used + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n == 0) break;
    if (n < 0 && errno != EINTR) return std::nullopt;
  }
  return bytes;
}

}  // namespace lictor
