#pragma once

#include <unistd.h>

#include <iostream>
#include <string>

namespace lictor {

/// Tells ctest that what runs here cannot be tested on this machine, and why: it then reports the
/// test as skipped (SKIP_REGULAR_EXPRESSION), and never as passed.
inline void tell_skipped(const std::string& reason) {
  std::cout << "\nskipped: " << reason << std::endl;
}

/// What only root can try. False, and told, elsewhere.
inline bool is_root() {
  if (geteuid() == 0) return true;
  tell_skipped("needs root");
  return false;
}

}  // namespace lictor
