#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace lictor {

/// An opened file, and whether others could have chosen what lies there.
struct TracedFile {
  UniqueFd fd;
  struct stat status {};  ///< of `fd`
  /// The first step of the path that others than root (and `owner`) may change or replace, and how:
  /// "the folder /opt/x may be written by others than root". Empty: there is none.
  std::string fault;
  std::string culprit;  ///< the path of `fault`
};

/// Opens `path` as open(2) does with `flags` (O_CLOEXEC is added, nothing is created), and checks
/// each folder and symbolic link on the way to the opened file, since changing a step means
/// choosing the file. Faults are: a file, folder or link of another user than root or `owner`; a
/// file or folder that its group or everybody may write. A folder with the sticky bit may be
/// writable: nobody can replace another user's files there. A descriptor that this process was
/// given (/dev/stdin, /dev/fd/63) is checked by itself, since no path leads to it.
///
/// If a file had no fault, its path leads to the same file until root changes that. So the path may
/// be given to functions that take no descriptor: execve(2) of a script, dlopen(3).
///
/// std::nullopt: errno says why. Blocks on the file system.
[[nodiscard]] std::optional<TracedFile> open_traced(const std::string& path, int flags,
                                                    uid_t owner = 0);

/// `file.fault` with its reason and its way out, if this process is root's: "<fault>, and lictor
/// runs as root: they could <deed>; chown root and chmod go-w <culprit>". Otherwise empty.
[[nodiscard]] std::string distrust(const TracedFile& file, const std::string& deed);

}  // namespace lictor
