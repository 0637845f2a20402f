#include "exec/log_pruner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/unique_fd.h"

namespace lictor::exec {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 10min;
// The least that a file takes on the disk: most logs are a line.
constexpr std::uint64_t kLeastSpace = 4096;

std::uint64_t space_of(const struct stat& file) {
  constexpr std::uint64_t kBlock = 512;  // of st_blocks, by POSIX
  return std::max({static_cast<std::uint64_t>(file.st_blocks) * kBlock,
                   static_cast<std::uint64_t>(file.st_size), kLeastSpace});
}

using Folder = std::shared_ptr<DIR>;

struct File {
  std::chrono::nanoseconds modified{};  // since the epoch
  std::uint64_t space = 0;
  Folder folder;
  std::string name;
  std::string path;
};

void note_error(const char* what, const std::string& path, std::string& error) {
  if (error.empty()) error = std::string{"cannot "} + what + " " + path + ": " + errno_text();
}

// Null: it is no folder, or cannot be read.
Folder open_folder(int parent, const std::string& name, std::string& error) {
  UniqueFd fd{openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  // Files and links at this level are not lictor's.
  if (!fd && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) note_error("read", name, error);
  DIR* const folder = fd ? fdopendir(fd.release()) : nullptr;
  return folder ? Folder{folder, closedir} : nullptr;
}

// The logs of one queue.
void add_logs(const Folder& folder, const std::string& path, std::vector<File>& files) {
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name{entry->d_name};
    struct stat info {};
    if (!name.ends_with(".log") ||
        fstatat(dirfd(folder.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    files.push_back(
        {std::chrono::seconds{info.st_mtim.tv_sec} + std::chrono::nanoseconds{info.st_mtim.tv_nsec},
         space_of(info), folder, name, path + "/" + name});
  }
}

// All logs, the oldest first.
std::vector<File> all_logs(const std::string& directory, std::string& error) {
  std::vector<File> files;
  const Folder top = open_folder(AT_FDCWD, directory, error);
  while (const dirent* entry = top ? readdir(top.get()) : nullptr) {
    const std::string name{entry->d_name};
    if (name == "." || name == "..") continue;
    if (const Folder folder = open_folder(dirfd(top.get()), name, error)) {
      add_logs(folder, directory + "/" + name, files);
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.modified, a.name) < std::tie(b.modified, b.name);
  });
  return files;
}

}  // namespace

Pruned prune_logs(const std::string& directory, const LogLimits& limits, WallTime now,
                  const ActiveLogs& active) {
  Pruned pruned;
  const std::vector<File> files = all_logs(directory, pruned.error);
  for (const File& file : files) pruned.kept_bytes += file.space;
  pruned.kept = files.size();
  const auto oldest = std::chrono::nanoseconds{now.time_since_epoch()} - limits.max_age;
  for (const File& file : files) {
    if (file.modified >= oldest && pruned.kept_bytes <= limits.max_bytes) break;
    if (active.contains(file.path)) continue;
    if (unlinkat(dirfd(file.folder.get()), file.name.c_str(), 0) != 0 && errno != ENOENT) {
      note_error("remove", file.path, pruned.error);
      continue;
    }
    ++pruned.removed;
    --pruned.kept;
    pruned.removed_bytes += file.space;
    pruned.kept_bytes -= file.space;
  }
  return pruned;
}

LogPruner::LogPruner(std::string directory, LogLimits limits,
                     std::shared_ptr<const ActiveLogs> active,
                     std::function<void(const Pruned&)> on_pruned)
    : directory_(std::move(directory)),
      limits_(limits),
      active_(std::move(active)),
      on_pruned_(std::move(on_pruned)),
      thread_([this] { run(); }) {}

LogPruner::~LogPruner() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LogPruner::ask() {
  {
    const std::lock_guard lock{mutex_};
    asked_ = true;
  }
  changed_.notify_all();
}

void LogPruner::run() {
  std::unique_lock lock{mutex_};
  while (!ending_) {
    asked_ = false;
    lock.unlock();
    on_pruned_(prune_logs(directory_, limits_, wall_now(), *active_));
    lock.lock();
    changed_.wait_for(lock, kInterval, [this] { return asked_ || ending_; });
  }
}

}  // namespace lictor::exec
