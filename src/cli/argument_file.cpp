#include "cli/argument_file.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <iostream>

#include "base/errno_text.h"

namespace lictor::cli {
namespace {

// Not by iterators: what cannot be read, a directory among it, they throw and a stream marks.
std::string read_all(std::istream& in) {
  std::string text;
  std::array<char, 4096> part{};
  while (in.read(part.data(), part.size()), in.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

}  // namespace

Result<std::string> read_argument(const std::string& flag, const std::string& argument) {
  if (argument == "-") return read_all(std::cin);
  if (!argument.starts_with('@')) return argument;
  const std::string file = argument.substr(1);
  errno = 0;
  std::ifstream in{file};
  std::string text;
  if (in) text = read_all(in);
  if (!in.is_open() || in.bad()) {
    const std::string why = errno == 0 ? "no such file" : errno_text();
    return fail(ErrorCode::kInvalid, flag + ": cannot read " + file + ": " + why);
  }
  return text;
}

}  // namespace lictor::cli
