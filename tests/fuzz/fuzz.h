#pragma once

// Shared by the fuzzers. Each is a program of its own: libFuzzer hands it bytes, and it looks not
// for crashes alone but for properties that hold for any bytes.

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

/// Takes the first line off `text`: the part of an input beside the bytes that are read.
inline std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace lictor::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
