#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/runner.h"
#include "exec/user.h"
#include "lictor/time.h"

namespace lictor::exec {

/// "NAME=VALUE", as execve(2) takes them.
using Environment = std::vector<std::string>;

/// The longest value that is passed; the kernel refuses a variable of 128 KiB (MAX_ARG_STRLEN), and
/// the job with it. A longer one is to be read from standard input.
inline constexpr std::size_t kMaxVariableBytes = 131072 - 1024;

/// What every job gets of the daemon's own environment: PATH, LANG, LANGUAGE, LC_*, TZ, TMPDIR, and
/// HOME, USER, LOGNAME, SHELL, which are `user`'s if it is given. Nothing else: what configures the
/// daemon, Consul's token above all, is not the jobs'.
[[nodiscard]] Environment base_environment(const Environment& daemon, const User* user);

/// `base`, then `configured` over it, except for names that start with LICTOR_, then
/// LICTOR_TASK_ID, _TASK_KEY, _TASK_TYPE, _QUEUE, _ATTEMPT, _FENCING_TOKEN, _DEADLINE (RFC 3339;
/// empty if there is none), and each scalar of the record's taskPara as LICTOR_PARA_<name>: strings
/// as they are, numbers as they are written, true and false, null as nothing. What is no letter,
/// digit or '_' in a name becomes '_'; of two names that become one, the later counts. A value with
/// a NUL byte, or too long, is left out.
[[nodiscard]] Environment job_environment(
    const Environment& base, const std::vector<std::pair<std::string, std::string>>& configured,
    const Attempt& attempt, std::optional<WallTime> deadline);

/// This process's environment.
[[nodiscard]] Environment own_environment();

}  // namespace lictor::exec
