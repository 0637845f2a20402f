#pragma once

#include <string>

namespace lictor {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

namespace unit {
using lictor::contains;
}

}  // namespace lictor
