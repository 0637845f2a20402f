#include "exec/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/errno_text.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

// Linux's file systems allow 255 bytes; attempt, token and suffix need 36.
constexpr std::size_t kMaxNameBytes = 200;

std::string safe_name(std::string_view text) {
  std::string name;
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hash = (hash ^ byte) * 0x100000001b3U;
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !name.empty());
    std::array<char, 4> escaped{};
    if (!plain) std::snprintf(escaped.data(), escaped.size(), "%%%02X", byte);
    name += plain ? std::string(1, c) : std::string{escaped.data()};
  }
  if (name.size() <= kMaxNameBytes) return name;
  std::array<char, 20> suffix{};
  std::snprintf(suffix.data(), suffix.size(), "~%016llx", static_cast<unsigned long long>(hash));
  return name.substr(0, kMaxNameBytes - 17) + suffix.data();
}

// Makes the missing directories of `path`.
void make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0750);  // The open reports a failure.
  }
}

}  // namespace

std::string output_log_path(const std::string& directory, std::string_view queue,
                            std::string_view task_id, std::uint32_t attempt, std::uint64_t token) {
  return output_log_stem(directory, queue, task_id) + std::to_string(attempt) + "." +
         std::to_string(token) + ".log";
}

std::string output_log_stem(const std::string& directory, std::string_view queue,
                            std::string_view task_id) {
  return directory + "/" + safe_name(queue) + "/" + safe_name(task_id) + ".";
}

OutputLog::OutputLog(std::string path, std::size_t cap) : path_(std::move(path)), room_(cap) {}

std::string OutputLog::write(std::string_view bytes) {
  if (bytes.size() >= kTailBytes) {
    tail_ = bytes.substr(bytes.size() - kTailBytes);
  } else {
    tail_ += bytes;
    if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
  if (path_.empty()) return {};
  const std::string_view kept = bytes.substr(0, room_);
  room_ -= kept.size();
  left_out_ += bytes.size() - kept.size();
  return kept.empty() ? std::string{} : append(kept);
}

std::string OutputLog::finish() {
  std::string problem;
  if (left_out_ > 0 && !path_.empty()) {
    problem = append("\n[lictor: " + std::to_string(left_out_) + " more bytes were left out]\n");
  }
  file_.reset();
  return problem;
}

std::string OutputLog::tail() const {
  std::string_view last = tail_;
  if (last.size() > kTailBytes) last.remove_prefix(last.size() - kTailBytes);
  const auto skip_continuation = [&] {
    for (int i = 0; i < 3 && !last.empty() && (last.front() & 0xc0) == 0x80; ++i) {
      last.remove_prefix(1);
    }
  };
  if (last.size() == kTailBytes) skip_continuation();  // The cut may have split a character.
  std::string valid = to_utf8(last);
  if (valid.size() <= kTailBytes) return valid;  // Each invalid byte has become three.
  last = valid;
  last.remove_prefix(last.size() - kTailBytes);
  skip_continuation();
  return std::string{last};
}

std::string OutputLog::append(std::string_view bytes) {
  if (path_.empty()) return {};
  if (!file_ && !open()) return give_up("open");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return give_up("write");
    outcome_.written = true;
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
  paths_.erase(path);
  if (outcome.written && outcome.error.empty()) newest_error_.clear();
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

}  // namespace lictor::exec
