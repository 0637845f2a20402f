#include "exec/stored_logs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "exec/output_log.h"

namespace lictor::exec {
namespace {

constexpr std::string_view kSuffix = ".log";

tl::unexpected<Error> cannot(const char* what, const std::string& path, int number) {
  const bool denied = number == EACCES || number == EPERM;
  return fail(denied ? ErrorCode::kPermissionDenied : ErrorCode::kFailed,
              std::string{"cannot "} + what + " " + path + ": " + errno_text(number) +
                  (denied ? "; ask for the right to read it" : ""));
}

// "<attempt>.<token>.log", which follows the task's name.
std::optional<StoredLog> parse_rest(std::string_view rest) {
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos || !rest.ends_with(kSuffix)) return std::nullopt;
  const auto attempt = to_number<std::uint32_t>(rest.substr(0, dot));
  rest.remove_suffix(kSuffix.size());
  const auto token = to_number<std::uint64_t>(rest.substr(std::min(dot + 1, rest.size())));
  if (!attempt || !token) return std::nullopt;
  return StoredLog{{}, *attempt, *token};
}

WallTime wall_time(const timespec& time) {
  return WallTime{std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec})};
}

}  // namespace

Result<std::vector<StoredLog>> stored_logs(const std::string& directory, std::string_view queue,
                                           std::string_view task_id, const ActiveLogs* active) {
  // Read the active logs before the folder: an attempt that ends in between still counts as running,
  // so a follower looks once more.
  const std::string stem = output_log_stem(directory, queue, task_id);
  const std::size_t slash = stem.rfind('/');
  const std::string folder_path = stem.substr(0, slash);
  const std::string_view name_stem = std::string_view{stem}.substr(slash + 1);
  std::vector<StoredLog> logs;
  const auto errors = active ? active->errors_below(stem) : std::map<std::string, std::string>{};
  for (std::string& path : active ? active->below(stem) : std::vector<std::string>{}) {
    auto log = parse_rest(std::string_view{path}.substr(stem.size()));
    if (!log) continue;
    log->path = std::move(path);
    log->running = true;
    logs.push_back(std::move(*log));
  }

  const std::unique_ptr<DIR, int (*)(DIR*)> folder{opendir(folder_path.c_str()), closedir};
  const bool missing = !folder && (errno == ENOENT || errno == ENOTDIR);
  if (!folder && !missing) return cannot("read the folder", folder_path, errno);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name{entry->d_name};
    if (!name.starts_with(name_stem)) continue;
    auto parsed = parse_rest(name.substr(name_stem.size()));
    struct stat info {};
    if (!parsed || fstatat(dirfd(folder.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    const auto known = std::find_if(logs.begin(), logs.end(), [&](const StoredLog& log) {
      return log.token == parsed->token && log.attempt == parsed->attempt;
    });
    StoredLog& log = known != logs.end() ? *known : logs.emplace_back(std::move(*parsed));
    log.path = folder_path + "/" + entry->d_name;
    log.size = static_cast<std::uint64_t>(info.st_size);
    log.modified = wall_time(info.st_mtim);
  }
  for (const auto& lost_log : errors) {  // clang 14 captures no structured binding
    const std::string& path = lost_log.first;
    const auto known = std::find_if(logs.begin(), logs.end(),
                                    [&](const StoredLog& log) { return log.path == path; });
    if (known != logs.end()) {
      known->error = lost_log.second;
    } else if (auto lost = parse_rest(std::string_view{path}.substr(stem.size()))) {
      lost->path = path;
      lost->error = lost_log.second;
      logs.push_back(*std::move(lost));  // not even its file could be made
    }
  }
  std::sort(logs.begin(), logs.end(), [](const StoredLog& a, const StoredLog& b) {
    return std::pair{a.token, a.attempt} < std::pair{b.token, b.attempt};
  });
  return logs;
}

Result<std::string> read_log(const std::string& path, std::uint64_t offset, std::size_t limit) {
  // O_NONBLOCK: it may be a FIFO.
  const UniqueFd file{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!file && errno == ENOENT) return std::string{};
  if (!file) return cannot("open", path, errno);
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return cannot("read", path, errno);
  if (!S_ISREG(info.st_mode)) return cannot("read", path, EINVAL);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (offset >= size) return std::string{};
  lseek(file.get(), static_cast<off_t>(offset), SEEK_SET);
  auto bytes = read_up_to(file.get(), limit - 1);
  if (!bytes) return cannot("read", path, errno);
  return *std::move(bytes);
}

}  // namespace lictor::exec
