#include "app/service_status.h"

#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/log.h"

namespace lictor::app {

// Called after each turn, so only changes go to systemd. A stop that takes long is logged as well:
// people look at the log when "systemctl stop" hangs.
void ServiceStatus::report(Instant now, const Now& status) {
  constexpr Duration kLogInterval = std::chrono::seconds{5};
  if (status.stopping && !status.waits_for.empty()) {
    if (log_at_ == Instant::max()) log_at_ = now + kLogInterval;
    if (now >= log_at_) {
      log_at_ = now + kLogInterval;
      runtime::log(runtime::Level::kInfo, status.waits_for);
    }
  }
  std::string text = !status.waits_for.empty() ? status.waits_for
                     : status.leading.empty()
                         ? "following"
                         : fmt::format("leading {}", fmt::join(status.leading, ", "));
  if (!status.restart_for.empty()) text += "; a restart is needed for " + status.restart_for;
  if (std::exchange(notified_, text) == text) return;
  notifier_.notify("STATUS=" + excerpt(text, 1000));
}

void log_new_token(const std::string& file) {
  runtime::log(runtime::Level::kInfo, "the token was read again", {{"file", file}});
}

}  // namespace lictor::app
