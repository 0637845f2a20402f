#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace lictor {

void assert_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "lictor: bug: %s:%d: %s does not hold; please report this\n", file, line,
               condition);
  std::abort();
}

}  // namespace lictor
