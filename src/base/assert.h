#pragma once

#include <cstdio>
#include <cstdlib>

/// Always on, also in release builds: a bug aborts, and systemd restarts the daemon. For bugs only;
/// a fault of the world (a full disk, a lost connection, a bad record) is handled, never asserted.
#define LICTOR_ASSERT(condition)                       \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::lictor::assert_failed(#condition, __FILE__, __LINE__))

namespace lictor {

[[noreturn]] inline void assert_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "lictor: bug: %s:%d: %s does not hold; please report this\n", file, line,
               condition);
  std::abort();
}

}  // namespace lictor
