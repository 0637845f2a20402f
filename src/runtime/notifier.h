#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "lictor/time.h"

namespace lictor::runtime {

/// Tells systemd the state of this process, as sd_notify(3) does, but never waits for it: PID 1 may
/// not read for a while, as during a daemon-reload. States that it does not take are sent again.
/// Does nothing without $NOTIFY_SOCKET. Not thread-safe.
class Notifier {
 public:
  Notifier();

  /// "READY=1", "STATUS=leading". A new STATUS replaces a waiting one.
  void notify(std::string state);

  /// The watchdog's time (WATCHDOG_USEC); zero: there is none.
  [[nodiscard]] Duration watchdog() const { return watchdog_; }

  /// Call while the process is well. Feeds the watchdog once in a third of its time, however often
  /// this is called, and sends waiting states.
  void alive(Instant now);

 private:
  [[nodiscard]] bool send(std::string_view state) const;
  void flush();

  UniqueFd socket_;
  std::string address_;  ///< a sockaddr_un
  Duration watchdog_{};
  Instant fed_at_ = Instant::min();
  std::deque<std::string> waiting_;
};

}  // namespace lictor::runtime
