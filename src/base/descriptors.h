#pragma once

#include <sys/resource.h>

namespace lictor {

/// Opens /dev/null on each of 0, 1 and 2 that is closed. Otherwise the next file or socket gets
/// the number, and printed text goes there. Call it first of all.
void open_standard_descriptors();

/// Raises this process's limit of open files to the hard limit.
void raise_descriptor_limit();

/// The soft limit before that, for programs: some break above 1,024, by select(2) or by closing all
/// possible descriptors. 0: it was not raised.
[[nodiscard]] rlim_t programs_descriptor_limit();

/// The most that this process may ever have.
[[nodiscard]] rlim_t most_descriptors();

}  // namespace lictor
