#pragma once

namespace lictor {

/// Returns all free memory of the allocator to the system, also small scattered pieces: glibc's, or
/// mimalloc's if the program is linked with it. Of mimalloc's only what this thread has allocated.
void trim_memory();

}  // namespace lictor
