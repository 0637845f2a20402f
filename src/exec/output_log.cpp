#include "exec/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::exec {
namespace {

// Linux's file systems allow 255 bytes; attempt, token and suffix need 36.
constexpr std::size_t kMaxNameBytes = 200;

// A little more than the tail, for the character that begins before the tail.
constexpr std::size_t kKeptBytes = OutputLog::kTailBytes + 4;

// The least that a file takes on the disk: most logs are a line.
constexpr std::uint64_t kLeastSpace = 4096;

// The part of a log's cap that is kept for the end of a longer output; in memory until finish().
constexpr std::size_t kLogTailBytes = 65536;

std::string safe_name(std::string_view text) {
  std::string name = percent_encoded(text, "_-.");
  if (name.starts_with('.')) name.replace(0, 1, "%2E");
  if (name.size() <= kMaxNameBytes) return name;
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  const std::string suffix = fmt::format("~{:016x}", hash);
  return name.substr(0, kMaxNameBytes - suffix.size()) + suffix;
}

void make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0750);  // The open reports a failure.
  }
}

constexpr std::string_view kSuffix = ".log";

tl::unexpected<Error> cannot(const char* what, const std::string& path, int number) {
  const bool denied = number == EACCES || number == EPERM;
  return fail(denied ? ErrorCode::kPermissionDenied : ErrorCode::kFailed,
              std::string{"cannot "} + what + " " + path + ": " + errno_text(number) +
                  (denied ? "; ask for the right to it" : ""));
}

// The entries of the folder; none if `folder` is not one: files and links beside the queues'
// folders are not lictor's.
Result<std::vector<std::string>> paths_in(const std::string& folder) {
  std::vector<std::string> paths;
  struct stat info {};
  const bool is_folder = lstat(folder.c_str(), &info) == 0 ? S_ISDIR(info.st_mode)
                                                           : errno != ENOENT && errno != ENOTDIR;
  if (!is_folder) return paths;
  std::error_code error;
  std::filesystem::directory_iterator entry{folder, error};
  for (; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
    paths.push_back(entry->path().string());
  }
  if (error) return cannot("read the folder", folder, error.value());
  return paths;
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

// Cuts the last line that is not blank off `output`, with everything after it; "": there is none.
std::string_view take_line(std::string_view& output) {
  constexpr std::string_view kBlank = " \t\r\n";
  output = output.substr(0, output.find_last_not_of(kBlank) + 1);
  const std::size_t before = output.find_last_of("\r\n");
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view line = output.substr(begin);
  output = output.substr(0, begin);
  return line;
}

// A stack frame of Node or Java: "    at f (job.mjs:3:7)".
bool is_frame(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin != 0 && begin != std::string_view::npos && line.substr(begin).starts_with("at ");
}

}  // namespace

std::string last_line(std::string_view output) {
  std::string_view left = output;
  const std::string_view last = take_line(left);
  std::string_view line = last;
  if (last.starts_with('\t') && last.find(".go:") != std::string_view::npos) {
    for (const std::string_view start : {"panic: ", "fatal error: "}) {
      const std::size_t at = output.rfind(start);
      if (at == std::string_view::npos || (at > 0 && output[at - 1] != '\n')) continue;
      line = output.substr(at, output.find('\n', at) - at);
    }
  } else {
    // Node also prints members of the error there: "  code: 'ENOENT'" and "}".
    const bool is_node = last.starts_with("Node.js v");
    const auto is_detail = [&](std::string_view each) {
      return is_frame(each) ||
             (is_node && (each == last || each.starts_with(' ') || each.starts_with('}')));
    };
    while (is_detail(line)) line = take_line(left);
  }
  return excerpt(line.empty() ? last : line, 200);
}

std::string output_log_path(const std::string& directory, std::string_view queue,
                            std::string_view key_id, std::uint32_t attempt, std::uint64_t token) {
  return output_log_stem(directory, queue, key_id) + std::to_string(attempt) + "." +
         std::to_string(token) + ".log";
}

std::string output_log_stem(const std::string& directory, std::string_view queue,
                            std::string_view key_id) {
  return directory + "/" + safe_name(queue) + "/" + safe_name(key_id) + ".";
}

OutputLog::OutputLog(std::string path, std::size_t cap)
    : path_(std::move(path)), end_(std::min(cap / 2, kLogTailBytes)), room_(cap - end_) {}

std::string OutputLog::write(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, room_);
  room_ -= head.size();
  after_head_ += bytes.size() - head.size();
  const std::size_t most = room_ == 0 ? std::max(end_, kKeptBytes) : kKeptBytes;
  if (bytes.size() >= most) {
    tail_ = bytes.substr(bytes.size() - most);
  } else {
    tail_ += bytes;
    if (tail_.size() > 2 * most) tail_.erase(0, tail_.size() - most);
  }
  return head.empty() || path_.empty() ? std::string{} : append(head);
}

std::string OutputLog::finish() {
  std::string problem;
  if (after_head_ > 0 && !path_.empty()) {
    const auto end = static_cast<std::size_t>(std::min<std::uint64_t>(after_head_, end_));
    const std::uint64_t missing = after_head_ - end;
    std::string rest;
    if (missing > 0) {
      rest = "\n[lictor: " + std::to_string(missing) + " bytes were left out here]\n";
    }
    problem = append(rest.append(tail_, tail_.size() - end));
  }
  file_.reset();
  return problem;
}

std::string OutputLog::tail() const {
  const std::string_view kept{tail_};
  const std::string valid = to_utf8(kept.substr(kept.size() - std::min(kept.size(), kKeptBytes)));
  std::size_t begin = valid.size() - std::min(valid.size(), kTailBytes);
  while (begin < valid.size() && (valid[begin] & 0xc0) == 0x80) ++begin;  // not within a character
  return valid.substr(begin);
}

std::string OutputLog::append(std::string_view bytes) {
  if (!file_ && !open()) return give_up("open");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return give_up("write");
    outcome_.bytes += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

bool OutputLog::open() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  file_.reset(::open(path_.c_str(), kFlags, 0640));
  if (!file_ && errno == ENOENT) {
    make_directories(path_);
    file_.reset(::open(path_.c_str(), kFlags, 0640));
  }
  return static_cast<bool>(file_);
}

std::string OutputLog::give_up(const char* what) {
  const int error = errno;
  outcome_.error = std::string{"cannot "} + what + ' ' + path_ + ": " + errno_text(error);
  path_.clear();
  file_.reset();
  return outcome_.error + "; the job goes on, but its output is lost";
}

void ActiveLogs::remove(const std::string& path, const LogOutcome& outcome) {
  if (!outcome.error.empty()) lose(path, outcome.error);
  const std::lock_guard lock{mutex_};
  if (const auto found = paths_.find(path); found != paths_.end()) paths_.erase(found);
  if (outcome.bytes == 0) return;
  if (outcome.error.empty()) newest_error_.clear();
  ended_bytes_ += std::max(outcome.bytes, kLeastSpace);
  grown_.notify_all();
}

void ActiveLogs::wait_for_growth(const std::stop_token& stop, std::uint64_t bytes,
                                 Duration at_most) {
  std::unique_lock lock{mutex_};
  grown_.wait_for(lock, stop, at_most, [&] { return ended_bytes_ >= bytes; });
  ended_bytes_ = 0;
}

void ActiveLogs::lose(const std::string& path, const std::string& error) {
  const std::lock_guard lock{mutex_};
  newest_error_ = error;
  std::erase_if(errors_, [&](const auto& known) { return known.first == path; });
  if (errors_.size() == kErrorsKept) errors_.pop_front();
  errors_.emplace_back(path, error);
}

std::map<std::string, std::string> ActiveLogs::errors_below(std::string_view prefix) const {
  const std::lock_guard lock{mutex_};
  std::map<std::string, std::string> found;
  for (const auto& [path, error] : errors_) {
    if (path.starts_with(prefix)) found[path] = error;
  }
  return found;
}

std::string ActiveLogs::newest_error() const {
  const std::lock_guard lock{mutex_};
  return newest_error_;
}

Result<std::vector<StoredLog>> stored_logs(const std::string& directory, std::string_view queue,
                                           std::string_view key_id, const ActiveLogs* active) {
  const std::string stem = output_log_stem(directory, queue, key_id);
  std::map<std::pair<std::uint64_t, std::uint32_t>, StoredLog> logs;  // by token and attempt
  // Null: `path` is no log of this task.
  const auto log_at = [&](const std::string& path) -> StoredLog* {
    if (!path.starts_with(stem)) return nullptr;
    const auto parsed = parse_rest(std::string_view{path}.substr(stem.size()));
    if (!parsed) return nullptr;
    StoredLog& log = logs.try_emplace({parsed->token, parsed->attempt}, *parsed).first->second;
    log.path = path;
    return &log;
  };
  // Read the active logs before the folder: an attempt that ends in between still counts as
  // running, so a follower looks once more.
  const auto errors = active ? active->errors_below(stem) : std::map<std::string, std::string>{};
  for (const std::string& path : active ? active->below(stem) : std::vector<std::string>{}) {
    if (StoredLog* log = log_at(path)) log->running = true;
  }
  LICTOR_TRY(const auto paths, paths_in(stem.substr(0, stem.rfind('/'))));
  for (const std::string& path : paths) {
    if (!path.starts_with(stem)) continue;  // skip the many other tasks' files
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (StoredLog* log = log_at(path)) {
      log->size = static_cast<std::uint64_t>(info.st_size);
      log->modified = wall_time(info.st_mtim);
    }
  }
  for (const auto& [path, text] : errors) {
    if (StoredLog* log = log_at(path)) log->error = text;  // perhaps without a file
  }
  std::vector<StoredLog> sorted;
  sorted.reserve(logs.size());
  for (auto& [order, log] : logs) sorted.push_back(std::move(log));
  return sorted;
}

Result<std::string> read_log(const std::string& path, std::uint64_t offset, std::size_t limit) {
  // O_NONBLOCK: `path` may be a FIFO.
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

namespace {

constexpr std::chrono::minutes kPruneEvery{10};
constexpr std::uint64_t kLeastGrowth = 1U << 20U;

std::uint64_t space_of(const struct stat& file) {
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks, by POSIX
  return std::max({static_cast<std::uint64_t>(file.st_blocks) * kBlock,
                   static_cast<std::uint64_t>(file.st_size), kLeastSpace});
}

struct File {
  WallTime modified{};
  std::uint64_t space = 0;
  std::string path;
};

// All logs, the oldest first. `error`: the first error.
std::vector<File> all_logs(const std::string& directory, std::string& error) {
  const auto entries = [&](const std::string& folder) {
    auto paths = paths_in(folder);
    if (!paths && error.empty()) error = std::move(paths.error().message);
    return std::move(paths).value_or(std::vector<std::string>{});
  };
  std::vector<File> files;
  for (const std::string& queue : entries(directory)) {
    for (const std::string& path : entries(queue)) {
      struct stat info {};
      const bool is_log = path.ends_with(kSuffix) && lstat(path.c_str(), &info) == 0;
      if (!is_log || !S_ISREG(info.st_mode)) continue;
      files.push_back({wall_time(info.st_mtim), space_of(info), path});
    }
  }
  std::ranges::sort(files, {}, [](const File& file) { return std::tie(file.modified, file.path); });
  return files;
}

}  // namespace

Pruned prune_logs(const std::string& directory, const LogLimits& limits, WallTime now,
                  const ActiveLogs& active) {
  Pruned pruned;
  const std::vector<File> files = all_logs(directory, pruned.error);
  for (const File& file : files) pruned.kept_bytes += file.space;
  pruned.kept = files.size();
  for (const File& file : files) {
    if (file.modified >= now - limits.max_age && pruned.kept_bytes <= limits.max_bytes) break;
    if (active.contains(file.path)) continue;
    if (unlink(file.path.c_str()) != 0 && errno != ENOENT) {
      if (pruned.error.empty()) pruned.error = cannot("remove", file.path, errno).value().message;
      continue;
    }
    ++pruned.removed;
    --pruned.kept;
    pruned.removed_bytes += file.space;
    pruned.kept_bytes -= file.space;
  }
  return pruned;
}

std::jthread start_log_pruner(const std::string& directory, LogLimits limits,
                              const std::shared_ptr<ActiveLogs>& active,
                              const std::function<void(const Pruned&)>& on_pruned) {
  return std::jthread{[=](const std::stop_token& stop) {
    const std::uint64_t growth = std::max(limits.max_bytes / 16, kLeastGrowth);
    while (!stop.stop_requested()) {
      on_pruned(prune_logs(directory, limits, wall_now(), *active));
      active->wait_for_growth(stop, growth, kPruneEvery);
    }
  }};
}

}  // namespace lictor::exec
