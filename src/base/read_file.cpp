#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_text.h"
#include "base/unique_fd.h"

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

Result<std::string> read_small_file(const std::string& what, const std::string& path,
                                    std::size_t limit) {
  const auto refuse = [&](const std::string& got) {
    return fail(ErrorCode::kInvalid, what + " \"" + path + "\": expected a readable file, got: " +
                                         got + "; correct the path or its rights");
  };
  // O_NONBLOCK: a FIFO without a writer must not hold up the start.
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file) return refuse(errno_text());
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) return refuse("a folder");
  auto text = read_up_to(file.get(), limit);
  if (!text) return refuse(errno_text());
  if (text->size() > limit) return refuse("over " + std::to_string(limit) + " bytes");
  return *std::move(text);
}

}  // namespace lictor
