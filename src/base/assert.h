#pragma once

/// Always on, also in release builds: a bug aborts, and systemd restarts the daemon. For bugs only;
/// a fault of the world (a full disk, a lost connection, a bad record) is handled, never asserted.
#define LICTOR_ASSERT(condition)                       \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::lictor::assert_failed(#condition, __FILE__, __LINE__))

namespace lictor {

[[noreturn]] void assert_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace lictor
