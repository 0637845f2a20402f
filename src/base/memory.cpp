#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#if __has_include(<mimalloc.h>)
#include <mimalloc.h>
#pragma weak mi_collect  // absent where the program is not linked with it
#pragma weak mi_option_set
#endif

namespace lictor {
namespace {

#if !__has_include(<mimalloc.h>)
constexpr void (*mi_collect)(bool) = nullptr;
constexpr void (*mi_option_set)(int, long) = nullptr;
constexpr int kPurgeDelay = 0;
#elif MI_MALLOC_VERSION >= 210
constexpr mi_option_t kPurgeDelay = mi_option_purge_delay;
#else
constexpr mi_option_t kPurgeDelay = mi_option_decommit_delay;
#endif

bool is_hot(std::string_view file, std::string_view program) {
  if (file == program) return true;
  file.remove_prefix(file.rfind('/') + 1);  // all of it, if there is no slash
  constexpr std::string_view kHot[] = {"ld-linux", "libc.",        "libgcc_s.",
                                       "libm.",    "libmimalloc.", "libstdc++."};
  return std::any_of(std::begin(kHot), std::end(kHot),
                     [file](std::string_view name) { return file.starts_with(name); });
}

}  // namespace

void give_back_large_blocks() {
  // mimalloc keeps freed memory for a while, and purges it only when it is called again.
  if (mi_option_set != nullptr) return mi_option_set(kPurgeDelay, 0);
  constexpr int kLarge = 1024 * 1024;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, 2 * kLarge);  // else the setting above leaves it at 128 kB
}

void give_back_free_memory() {
  if (mi_collect != nullptr) return mi_collect(true);
  malloc_trim(0);
}

void give_back_memory_of_thread() {
  if (mi_collect != nullptr) mi_collect(true);
}

// smaps (proc(5)) lists for each mapping its addresses, rights and inode, and further down how much
// of it differs from the file. A mapping with differences, relocations or a debugger's breakpoint,
// is left alone.
void give_back_start_pages() {
  std::error_code unknown;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", unknown).string();
  std::ifstream mappings{"/proc/self/smaps"};
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  for (std::string line; std::getline(mappings, line);) {
    unsigned long from = 0, to = 0, inode = 0, changed_kb = 0;
    char writable = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx r%c%*2c %*x %*x:%*x %lu %n", &from, &to, &writable,
                    &inode, &path) == 4) {
      const bool wanted =
          writable == '-' && inode != 0 &&
          !is_hot(std::string_view{line}.substr(static_cast<std::size_t>(path)), program);
      begin = from;
      end = wanted ? to : from;
    } else if (std::sscanf(line.c_str(), "Anonymous: %lu kB", &changed_kb) == 1) {
      // If it fails, the pages stay.
      if (changed_kb == 0 && begin != end) {
        (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
      }
      begin = end;
    }
  }
}

}  // namespace lictor
