#pragma once

// What an idle daemon keeps of the machine's memory.

namespace lictor {

/// What is large is given back when it is freed, whatever the sizes of before: from the second such
/// block on glibc would keep up to 64 MB for itself, and mimalloc a long list's until it is called
/// again. Process-wide, and for good; before there are threads. With glibc a new task beside
/// 100,000 waits 2 ms longer for it, of 44, and 7 MB less are kept; with mimalloc 2.4 MB less, of
/// 17, and 7 of 28 while the list is read (tests/bench, backlog).
void give_back_large_blocks();

/// Gives back what is free, scattered as it may be, which no allocator does by itself: glibc's, or
/// mimalloc where the program is linked with that. Of mimalloc's, what this thread has allocated.
void give_back_free_memory();

/// The same of a thread that is about to rest for long. Nothing with glibc, whose memory is of no
/// thread.
void give_back_memory_of_thread();

/// Of the libraries loaded so far what only the start needed: their pages are let go, and those
/// that are used again come back from the page cache. Not of the program and of what C and C++
/// stand on: a thousand jobs that are due at one instant would wait for them, for 5 to 10 ms
/// altogether (tests/bench, due).
void give_back_start_pages();

}  // namespace lictor
