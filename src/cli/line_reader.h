#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>

namespace lictor::cli {

/// Lines of a text, numbered from 1; empty ones are left out, a carriage return at the end of a
/// line and a byte order mark at the start of the text too.
class LineReader {
 public:
  explicit LineReader(std::istream& in) : in_(in) {}

  /// The next line, or nothing at the end, or where reading fails.
  [[nodiscard]] std::optional<std::string> next();

  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] bool failed() const { return in_.bad(); }

 private:
  std::istream& in_;
  std::size_t number_ = 0;
};

}  // namespace lictor::cli
