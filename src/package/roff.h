#pragma once

#include <string>

namespace lictor::package {

/// `text` as roff shows it unchanged, on a line of its own or within one.
[[nodiscard]] std::string roff_escaped(std::string text);

}  // namespace lictor::package
