#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

namespace lictor {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The first of `parts` that is not in `text`; empty: all of them are.
inline std::string missing_in(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (!contains(text, part)) return part;
  }
  return {};
}

/// How often `part` is in `text`.
inline std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace lictor
