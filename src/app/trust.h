#pragma once

#include <string>

#include "lictor/result.h"

namespace lictor::app {

/// Whether nobody but root can change or replace what lies at `path`, an absolute path or one below
/// the working directory: neither the file nor any folder on the way to it is another user's, or
/// may be written by its group or by everybody. A folder with the sticky bit may be: there nobody
/// replaces what is root's. Of a link, both its place and its target count. Not asked, and so no
/// error, where lictor does not run as root, and of what is no file, such as a pipe.
/// `what` names the file in messages, and `does` what others could make root do with it.
/// Blocks on the file system. Errors: kInvalid; the message names the culprit and the way out.
[[nodiscard]] Result<void> check_trusted(const std::string& what, const std::string& path,
                                         const std::string& does);

}  // namespace lictor::app
