#pragma once

#include <string>
#include <vector>

#include "lictor/time.h"
#include "runtime/notifier.h"

namespace lictor::app {

/// What "systemctl status" shows of the daemon: what it waits for, or what it leads.
class ServiceStatus {
 public:
  explicit ServiceStatus(runtime::Notifier& notifier) : notifier_(notifier) {}

  struct Now {
    std::string waits_for{};             ///< empty: nothing
    std::vector<std::string> leading{};  ///< queues
    std::string restart_for{};           ///< settings that need a restart
    bool stopping = false;
  };
  /// Tells the service manager when it has changed. What a stop waits for is logged, too, now and
  /// then.
  void report(Instant now, const Now& status);

 private:
  runtime::Notifier& notifier_;
  std::string notified_;
  Instant log_at_ = Instant::max();
};

/// Logs that a token file was read again. Thread safe.
void log_new_token(const std::string& file);

}  // namespace lictor::app
