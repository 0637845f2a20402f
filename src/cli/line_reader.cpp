#include "cli/line_reader.h"

#include <string_view>

namespace lictor::cli {

std::optional<std::string> LineReader::next() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string line;
  while (std::getline(in_, line)) {
    ++number_;
    if (number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) return line;
  }
  return std::nullopt;
}

}  // namespace lictor::cli
