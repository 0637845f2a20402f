#include "exec/log_pruner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/errno_text.h"

namespace lictor::exec {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

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
  std::string path;
};

void note_error(const char* what, const std::string& path, int number, std::string& error) {
  if (error.empty()) error = std::string{"cannot "} + what + " " + path + ": " + errno_text(number);
}

// What is in the folder. Nothing, if it is no folder: files and links beside the queues' folders are
// not lictor's.
std::vector<std::string> paths_in(const std::string& folder, std::string& error) {
  std::vector<std::string> paths;
  struct stat info {};
  if (lstat(folder.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) return paths;
  std::error_code failure;
  fs::directory_iterator entry{folder, failure};
  for (; !failure && entry != fs::directory_iterator{}; entry.increment(failure)) {
    paths.push_back(entry->path().string());
  }
  if (failure && failure.value() != ENOENT) note_error("read", folder, failure.value(), error);
  return paths;
}

// All logs, the oldest first.
std::vector<File> all_logs(const std::string& directory, std::string& error) {
  std::vector<File> files;
  for (const std::string& queue : paths_in(directory, error)) {
    for (const std::string& path : paths_in(queue, error)) {
      struct stat info {};
      const bool is_log = path.ends_with(".log") && lstat(path.c_str(), &info) == 0;
      if (!is_log || !S_ISREG(info.st_mode)) continue;
      const std::chrono::nanoseconds fraction{info.st_mtim.tv_nsec};
      files.push_back({std::chrono::seconds{info.st_mtim.tv_sec} + fraction, space_of(info), path});
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.modified, a.path) < std::tie(b.modified, b.path);
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
    if (unlink(file.path.c_str()) != 0 && errno != ENOENT) {
      note_error("remove", file.path, errno, pruned.error);
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
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void LogPruner::ask() {
  {
    const std::lock_guard lock{mutex_};
    asked_ = true;
  }
  changed_.notify_all();
}

void LogPruner::run(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    asked_ = false;
    lock.unlock();
    on_pruned_(prune_logs(directory_, limits_, wall_now(), *active_));
    lock.lock();
    changed_.wait_for(lock, stop, kInterval, [this] { return asked_; });
  }
}

}  // namespace lictor::exec
