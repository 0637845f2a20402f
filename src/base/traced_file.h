#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace lictor {

/// A file that was opened, and whether others could have chosen what lies there.
struct TracedFile {
  UniqueFd fd;
  struct stat status {};  ///< of `fd`
  /// The first step of the path that others than root (and `owner`) may change or replace, and how:
  /// "the folder /opt/x may be written by others than root". Empty: there is none.
  std::string fault;
  std::string culprit;  ///< the path that `fault` is about
};

/// Opens `path` as open(2) does with `flags` (O_CLOEXEC is added, nothing is created), and checks
/// each folder and symbolic link on the way to the file that was opened. Whoever may change a step
/// chooses the file: a fault is a file, folder or link of another user than root or `owner`, or a
/// file or folder that its group or everybody may write. A folder with the sticky bit may be
/// writable: nobody can replace another user's files there. A descriptor that this process was
/// given (/dev/stdin, /dev/fd/63) is checked by itself, since no path leads to it.
///
/// A path whose file had no fault leads to the same file until root changes that, so it may be
/// handed to what takes no descriptor: execve(2) of a script, dlopen(3).
///
/// std::nullopt: errno says why. Blocks on the file system.
[[nodiscard]] std::optional<TracedFile> open_traced(const std::string& path, int flags,
                                                    uid_t owner = 0);

/// `file.fault` with its reason and its way out, where this process is root's: "<fault>, and lictor
/// runs as root: they could <deed>; chown root and chmod go-w <culprit>". Else empty.
[[nodiscard]] std::string distrust(const TracedFile& file, const std::string& deed);

}  // namespace lictor
