#include "exec/user.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include "base/errno_text.h"

namespace lictor::exec {

Result<User> find_user(const std::string& name) {
  uid_t number = 0;
  const auto [end, parse_error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool by_number =
      !name.empty() && parse_error == std::errc{} && end == name.data() + name.size();

  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while (true) {
    error = by_number ? getpwuid_r(number, &entry, buffer.data(), buffer.size(), &found)
                      : getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error != ERANGE || buffer.size() >= (1U << 20U)) break;
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr) {
    // POSIX lets a look-up that finds nobody return any of these.
    const bool nobody = error == 0 || error == ENOENT || error == ESRCH || error == EPERM;
    if (nobody) return fail(ErrorCode::kNotFound, "there is no user \"" + name + "\" on this host");
    return fail(ErrorCode::kFailed, "cannot look up user \"" + name + "\": " + errno_text(error));
  }

  User user{entry.pw_name, entry.pw_dir, entry.pw_shell, {entry.pw_uid, entry.pw_gid, {}}};
  int count = 16;
  do {
    user.credentials.groups.resize(static_cast<std::size_t>(count));
  } while (getgrouplist(entry.pw_name, entry.pw_gid, user.credentials.groups.data(), &count) < 0);
  user.credentials.groups.resize(static_cast<std::size_t>(count));
  return user;
}

}  // namespace lictor::exec
