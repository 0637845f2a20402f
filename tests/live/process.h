#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support.h"

namespace lictor::live {

/// A child process. It is killed and waited for at the end, and by the system if the tests are
/// killed.
class Process {
 public:
  /// Standard output and error go to the end of `log_file`. `environment` is laid over ours.
  Process(const std::vector<std::string>& argv, const std::string& log_file,
          const std::map<std::string, std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Its exit code, or 128 + the signal's number; nothing if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit = patience());
  [[nodiscard]] bool runs() { return !wait(0ms); }

 private:
  pid_t pid_ = -1;
  std::optional<int> ended_;
};

struct Output {
  int exit_code = -1;
  std::string out;  ///< standard output and error
};

/// Runs a program to its end.
[[nodiscard]] Output run(const std::vector<std::string>& argv,
                         const std::map<std::string, std::string>& environment = {});

/// Whether the process is there and no zombie.
[[nodiscard]] bool is_alive(pid_t pid);

/// The processes that it has started.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

/// Of what proc(5) shows in `status`; empty: there is none.
[[nodiscard]] std::string status_field(pid_t pid, const std::string& name);

/// A sanitizer, which keeps what was freed for a while, is in this program and so in the daemons.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryTells = false;
#else
inline constexpr bool kMemoryTells = true;
#endif
/// VmRSS, say, what it takes now, or VmHWM, the most it took; 0 where there is none.
[[nodiscard]] inline long memory_kb(pid_t pid, const std::string& field) {
  return std::atol(status_field(pid, field).c_str());
}

}  // namespace lictor::live
