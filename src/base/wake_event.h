#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace lictor {

/// An eventfd(2), by which any thread wakes one that waits for descriptors.
class WakeEvent {
 public:
  /// Not thread-safe. False: there is no descriptor, and errno says why.
  [[nodiscard]] bool open() {
    event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return static_cast<bool>(event_);
  }
  /// Makes fd() readable, until clear().
  void wake() const noexcept {
    const std::uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof one);  // a full counter: a wake-up is pending
  }
  void clear() const noexcept {
    std::uint64_t count = 0;
    (void)!read(event_.get(), &count, sizeof count);
  }
  [[nodiscard]] int fd() const { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace lictor
