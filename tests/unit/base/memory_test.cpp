#include "base/memory.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lictor;

// The sanitizers bring a malloc of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

std::size_t allocated_kb() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    std::size_t kb = 0;
    if (word == "RssAnon:" && status >> kb) return kb;
  }
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("base");

TEST_CASE("memory that is free between pieces in use goes back to the system") {
  constexpr std::size_t kPieces = 8192;
  std::vector<std::unique_ptr<char[]>> pieces;
  // Small ones would go where other tests have freed some, and not between the others.
  for (std::size_t i = 0; i < kPieces; ++i) pieces.push_back(std::make_unique<char[]>(8000));
  for (std::size_t i = 0; i < kPieces; ++i) {
    if (i % 16 != 0) pieces[i].reset();
  }
  const std::size_t before = allocated_kb();
  trim_memory();
  const std::size_t after = allocated_kb();
  INFO(before << " kB before, " << after << " kB after");
  CHECK(after + kPieces * 8 / 2 < before);
}
#endif
