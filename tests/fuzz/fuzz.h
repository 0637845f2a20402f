#pragma once

// Shared by the fuzzers. Each is a program of its own: libFuzzer hands it bytes, and it looks not
// for crashes alone but for properties that hold for any bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// Ends the program, and with it the run, if a property does not hold.
#define FUZZ_REQUIRE(condition) \
  ((condition) ? void() : lictor::fuzz::broken(__FILE__, __LINE__, #condition))

namespace lictor::fuzz {

[[noreturn]] inline void broken(const char* file, int line, const char* property) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, property);
  std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes the part of `text` before `mark`, or all of it, and `mark` off its beginning.
inline std::string_view take_until(std::string_view& text, std::string_view mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + mark.size(), text.size()));
  return taken;
}

}  // namespace lictor::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
