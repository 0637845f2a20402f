#pragma once

#include <string>

namespace lictor::admin {

/// The value of the line of `text` that begins with `series`; empty: there is none.
inline std::string value(const std::string& text, const std::string& series) {
  const std::size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace lictor::admin
