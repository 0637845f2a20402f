#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace lictor {

/// The system's text for `error` ("No such file or directory").
[[nodiscard]] inline std::string errno_text(int error = errno) {
  return std::generic_category().message(error);
}

}  // namespace lictor
