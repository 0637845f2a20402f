#pragma once

#include <unistd.h>

#include <iostream>
#include <string>

namespace lictor {

/// Reports to ctest that this cannot be tested on this machine, and why: ctest then shows the test
/// as skipped (SKIP_REGULAR_EXPRESSION), and never as passed.
inline void tell_skipped(const std::string& reason) {
  std::cout << "\nskipped: " << reason << std::endl;
}

/// For tests that only root can run. Elsewhere reports the skip and returns false.
inline bool is_root() {
  if (geteuid() == 0) return true;
  tell_skipped("needs root");
  return false;
}

}  // namespace lictor
