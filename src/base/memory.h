#pragma once

// Returning memory to the system, so that an idle daemon keeps little.

namespace lictor {

/// From now on, large blocks go back to the system when they are freed: from the second such block
/// on, glibc would keep up to 64 MB, and mimalloc would keep them until its next call.
/// Process-wide; call it before there are threads. With glibc it saves 7 MB and costs a new task
/// beside 100,000 2 ms of 44; with mimalloc it saves 2.4 MB of 17, and 7 of 28 while the list is
/// read (tests/bench, backlog).
void give_back_large_blocks();

/// Returns all free memory of the allocator, also small scattered pieces: glibc's, or mimalloc's if
/// the program is linked with it. Of mimalloc's only what this thread has allocated.
void give_back_free_memory();

/// The same for a thread that is about to sleep for long. Does nothing with glibc, whose memory
/// belongs to no thread.
void give_back_memory_of_thread();

/// Unmaps the code pages of the libraries loaded so far, most of which only the start needed: 7 MB
/// of 19. Pages that are used again come back from the page cache. Leaves out the program and the C
/// and C++ runtimes: 1,000 jobs that are due at one instant would wait 5 to 10 ms for their pages
/// (tests/bench, due).
void give_back_start_pages();

}  // namespace lictor
