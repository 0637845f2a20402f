#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace lictor {

/// The host's own name; empty if it has none. For people, not for look-ups.
[[nodiscard]] inline std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace lictor
