#include "runtime/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>

using namespace lictor::runtime;

namespace {

// Of this process's resident pages those that are a file's, in kB.
std::size_t resident_file_kb() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    std::size_t kb = 0;
    if (word == "RssFile:" && status >> kb) return kb;
  }
  FAIL("no RssFile in /proc/self/status");
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("runtime");

TEST_CASE("the libraries' pages are let go, and come back") {
  const std::size_t before = resident_file_kb();
  give_back_start_pages();
  const std::size_t after = resident_file_kb();
  INFO(before << " kB before, " << after << " kB after");
  CHECK(after < before);
  CHECK(std::to_string(std::strtod("1.5", nullptr)).substr(0, 3) == "1.5");
}

TEST_CASE("what is not as it is in its file any more stays: a debugger's breakpoint, say") {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), &std::fclose};
  REQUIRE(file != nullptr);
  REQUIRE(ftruncate(fileno(file.get()), static_cast<off_t>(2 * size)) == 0);
  void* mapped =
      mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file.get()), 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* bytes = static_cast<volatile char*>(mapped);
  bytes[size] = 'x';
  REQUIRE(mprotect(mapped, 2 * size, PROT_READ) == 0);
  give_back_start_pages();
  CHECK(bytes[0] == '\0');
  CHECK(bytes[size] == 'x');
  munmap(mapped, 2 * size);
}

// The sanitizers bring a malloc of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("what is large is given back when it is freed, whatever was before") {
  give_back_large_blocks();
  constexpr std::size_t kLarge = 4 * 1024 * 1024;
  const std::size_t before = mallinfo2().hblkhd;
  for (int i = 0; i < 3; ++i) {
    auto block = std::make_unique<char[]>(kLarge);
    CHECK(mallinfo2().hblkhd >= before + kLarge);
    block.reset();
    CHECK(mallinfo2().hblkhd == before);
  }
}
#endif
