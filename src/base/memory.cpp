#include "base/memory.h"

#include <malloc.h>

// Of mimalloc; absent where the program is not linked with it.
extern "C" void mi_collect(bool force) __attribute__((weak));

namespace lictor {

void trim_memory() {
  if (mi_collect != nullptr) return mi_collect(true);
  malloc_trim(0);
}

}  // namespace lictor
