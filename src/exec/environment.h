#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/privileges.h"
#include "exec/runner.h"
#include "lictor/time.h"

namespace lictor::exec {

/// Environment variables by name. Ordered, because a producer could make hashes collide.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Longer variables are left out: with one of 128 KiB (MAX_ARG_STRLEN) the kernel refuses to run
/// the program. The job finds the value in the record on its standard input.
inline constexpr std::size_t kMaxVariableBytes = 131072 - 1024;

/// The part of the daemon's environment (environ(7)) that every job gets: PATH, LANG, LANGUAGE,
/// LC_*, TZ, TMPDIR, and HOME, USER, LOGNAME, SHELL, which are `user`'s if given. No other
/// variable: they configure the daemon and may hold Consul's token.
[[nodiscard]] Variables base_environment(const char* const* daemon, const User* user);

/// "NAME=VALUE", as execve(2) takes them. In this order, where the later one wins: `base`;
/// `configured`, without names that start with LICTOR_; LICTOR_TASK_ID, _TASK_KEY, _TASK_TYPE,
/// _QUEUE, _ATTEMPT, _FENCING_TOKEN, _DEADLINE (RFC 3339; empty: none); and each scalar of the
/// record's taskPara as LICTOR_PARA_<name>: strings and numbers as written, true and false, null as
/// an empty value. Other characters of a name than letters, digits and '_' become '_'. A value with
/// a NUL byte, or too long, is left out.
[[nodiscard]] std::vector<std::string> job_environment(
    Variables base, const std::vector<std::pair<std::string, std::string>>& configured,
    const Attempt& attempt, std::optional<WallTime> deadline);

}  // namespace lictor::exec
