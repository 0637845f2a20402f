#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace lictor {

/// A file that was opened step by step, and whether others could have chosen what lies there.
struct TracedFile {
  UniqueFd fd;
  struct stat status {};  ///< of `fd`
  /// What on the way others than root (and `owner`) may change or replace, and how; empty: nothing.
  /// "the folder /opt/x may be written by others than root"
  std::string fault;
  std::string culprit;  ///< the path that `fault` is about
};

/// Opens `path` as open(2) does with `flags` (O_CLOEXEC is added, nothing is made), one folder and
/// one symbolic link after the other, and looks at each: at the descriptors that the way leads
/// over, so that nothing can be swapped between the look and the use. Whoever may change a step
/// chooses the file: a fault is a file, folder or link of another user than root or `owner`, or a
/// file or folder that its group or everybody may write. A folder with the sticky bit may be: there
/// nobody replaces what is another's. A descriptor that this process was given (/dev/stdin,
/// /dev/fd/63) is looked at by itself: it has no way that leads to it.
///
/// A path whose file had no fault leads to the same file until root changes that, so it may be
/// handed to what takes no descriptor: execve(2) of a script, dlopen(3).
///
/// Nothing: errno says why. Blocks on the file system.
[[nodiscard]] std::optional<TracedFile> open_traced(const std::string& path, int flags,
                                                    uid_t owner = 0);

/// `file.fault` with its reason and its way out, where this process is root's: "<fault>, and lictor
/// runs as root: they could <deed>; chown root and chmod go-w <culprit>". Else empty.
[[nodiscard]] std::string distrust(const TracedFile& file, const std::string& deed);

}  // namespace lictor
