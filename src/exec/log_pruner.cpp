#include "exec/log_pruner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
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

struct File {
  std::chrono::nanoseconds modified{};  // since the epoch
  std::uint64_t space = 0;
  std::size_t folder = 0;
  std::string name;
};

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

class Pass {
 public:
  explicit Pass(std::string directory) : directory_(std::move(directory)) {}

  // Lists the logs, oldest first.
  void collect() {
    const Folder top = open_folder(AT_FDCWD, directory_);
    while (const dirent* entry = top ? readdir(top.get()) : nullptr) {
      const std::string name{entry->d_name};
      if (name == "." || name == "..") continue;
      if (Folder folder = open_folder(dirfd(top.get()), name)) {
        folders_.emplace_back(std::move(folder), directory_ + "/" + name + "/");
        collect_from(folders_.size() - 1);
      }
    }
    std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) {
      return std::tie(a.modified, a.name) < std::tie(b.modified, b.name);
    });
  }

  Pruned prune(const LogLimits& limits, WallTime now, const ActiveLogs& active) {
    for (const File& file : files_) pruned_.kept_bytes += file.space;
    pruned_.kept = files_.size();
    const auto oldest = std::chrono::nanoseconds{now.time_since_epoch()} - limits.max_age;
    for (const File& file : files_) {
      if (file.modified >= oldest && pruned_.kept_bytes <= limits.max_bytes) break;
      const auto& [folder, path] = folders_[file.folder];
      if (active.contains(path + file.name)) continue;
      if (unlinkat(dirfd(folder.get()), file.name.c_str(), 0) != 0 && errno != ENOENT) {
        note_error("remove", path + file.name);
        continue;
      }
      ++pruned_.removed;
      --pruned_.kept;
      pruned_.removed_bytes += file.space;
      pruned_.kept_bytes -= file.space;
    }
    return std::move(pruned_);
  }

 private:
  Folder open_folder(int parent, const std::string& name) {
    UniqueFd fd{openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    // Files and links at this level are not lictor's.
    if (!fd && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) note_error("read", name);
    return {fd ? fdopendir(fd.release()) : nullptr, closedir};
  }

  void collect_from(std::size_t index) {
    DIR* folder = folders_[index].first.get();
    while (const dirent* entry = readdir(folder)) {
      struct stat info {};
      if (!std::string_view{entry->d_name}.ends_with(".log") ||
          fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(info.st_mode)) {
        continue;
      }
      files_.push_back({std::chrono::seconds{info.st_mtim.tv_sec} +
                            std::chrono::nanoseconds{info.st_mtim.tv_nsec},
                        space_of(info), index, entry->d_name});
    }
  }

  void note_error(const char* what, const std::string& path) {
    if (!pruned_.error.empty()) return;
    pruned_.error = std::string{"cannot "} + what + " " + path + ": " + errno_text();
  }

  const std::string directory_;
  std::vector<std::pair<Folder, std::string>> folders_;
  std::vector<File> files_;
  Pruned pruned_;
};

}  // namespace

Pruned prune_logs(const std::string& directory, const LogLimits& limits, WallTime now,
                  const ActiveLogs& active) {
  Pass pass{directory};
  pass.collect();
  return pass.prune(limits, now, active);
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
