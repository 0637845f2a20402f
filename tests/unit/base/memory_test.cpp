#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>

using namespace lictor;

namespace {

// Of this process's resident pages those that are a file's, in kB, also one's in memory.
std::size_t resident_file_kb() {
  std::ifstream status{"/proc/self/status"};
  std::size_t sum = 0;
  for (std::string word; status >> word;) {
    std::size_t kb = 0;
    if ((word == "RssFile:" || word == "RssShmem:") && status >> kb) sum += kb;
  }
  return sum;
}

}  // namespace

TEST_SUITE_BEGIN("base");

TEST_CASE("pages of a file that is mapped as a library's code are let go, and come back") {
  constexpr std::size_t kBytes = 4 * 1024 * 1024;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), &std::fclose};
  REQUIRE(file != nullptr);
  REQUIRE(ftruncate(fileno(file.get()), kBytes) == 0);
  void* mapped =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fileno(file.get()), 0);
  REQUIRE(mapped != MAP_FAILED);
  const std::size_t before = resident_file_kb();
  give_back_start_pages();
  const std::size_t after = resident_file_kb();
  INFO(before << " kB before, " << after << " kB after");
  CHECK(after + kBytes / 2 / 1024 < before);
  CHECK(*static_cast<volatile char*>(mapped) == '\0');
  munmap(mapped, kBytes);
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
