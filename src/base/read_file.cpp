#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_text.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace lictor {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;  // Consul's are 36; JSON web tokens reach 2 KiB.

}  // namespace

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

std::string file_identity(int fd) {
  constexpr std::size_t kMostBytes = 100;  // a UUID
  const UniqueFd boot{open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  const std::string boot_id = boot ? read_up_to(boot.get(), kMostBytes).value_or("") : "";
  struct stat status {};
  fstat(fd, &status);
  return std::string{trimmed(boot_id)} + ":" + std::to_string(status.st_dev) + ":" +
         std::to_string(status.st_ino);
}

Result<std::string> read_small_file(const std::string& what, const std::string& path,
                                    std::size_t limit) {
  const auto refuse = [&](const std::string& got) {
    return fail(ErrorCode::kFailed, what + " \"" + path + "\": expected a readable file, got: " +
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

bool is_access_token(std::string_view text) {
  return text.size() <= kMaxTokenBytes && is_printable_ascii(text) &&
         text.find(' ') == std::string_view::npos;
}

Result<std::string> read_token_file(const std::string& path) {
  auto text = read_small_file("token_file", path, kMaxTokenBytes);
  if (!text) return text;
  const std::string_view token = trimmed(*text);
  if (!token.empty() && is_access_token(token)) return std::string{token};
  // The token's writer may not be done yet.
  return fail(token.empty() ? ErrorCode::kFailed : ErrorCode::kInvalid,
              "token_file \"" + path + "\": expected one token in printable ASCII, got " +
                  (token.empty() ? "nothing" : "something else (not shown)") +
                  "; write the token to it, and nothing else");
}

}  // namespace lictor
