#include "exec/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/errno_text.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

constexpr std::uint32_t bit(int capability) { return 1U << static_cast<unsigned>(capability); }

constexpr std::uint32_t kForJobs =
    bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_KILL) | bit(CAP_CHOWN);

using Sets = std::array<__user_cap_data_struct, 2>;  // capabilities 0 to 31, and 32 to 63

// The sets of the calling thread; empty if that fails, which needs a filtered system call.
Sets read_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{};
  return syscall(SYS_capget, &header, sets.data()) == 0 ? sets : Sets{};
}

// The kernel shrinks the ambient set accordingly.
bool write_sets(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

// Best effort: this needs CAP_SETPCAP. Without it, the systemd unit limits the bounding set.
void drop_from_bounding_set(std::uint64_t capabilities) {
  for (unsigned capability = 0; capability < 64; ++capability) {
    if ((capabilities >> capability & 1U) != 0) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

bool warden_may = false;

}  // namespace

Result<User> find_user(const std::string& name) {
  const auto uid = to_number<uid_t>(name);
  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while (true) {
    error = uid ? getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found)
                : getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (error != ERANGE || buffer.size() >= (1U << 20U)) break;
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr) {
    // By POSIX any of these errors means that there is no such user.
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

bool may_change_user() {
  return geteuid() == 0 || warden_may || (read_sets()[0].permitted & kForJobs) == kForJobs;
}

Result<void> drop_job_capabilities() {
  if (geteuid() == 0) return {};
  Sets sets = read_sets();
  auto& [effective, permitted, inheritable] = sets[0];
  if (((permitted | inheritable) & kForJobs) == 0) return {};
  warden_may = may_change_user();
  drop_from_bounding_set(kForJobs);
  for (std::uint32_t* set : {&effective, &permitted, &inheritable}) *set &= ~kForJobs;
  if (write_sets(sets)) return {};
  return fail(ErrorCode::kFailed,
              "cannot drop the capabilities that only the warden needs: " + errno_text() +
                  "; allow the system call capset, see job-user.conf");
}

bool keep_only_job_capabilities() {
  if (geteuid() == 0) {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return true;
  }
  const Sets sets = read_sets();
  const auto is_empty = [](const auto& half) { return (half.permitted | half.inheritable) == 0; };
  if (is_empty(sets[0]) && is_empty(sets[1])) return true;  // capset may be filtered
  drop_from_bounding_set(~std::uint64_t{0});
  const std::uint32_t kept = sets[0].permitted & kForJobs;
  return write_sets({{{kept, kept, 0}, {}}});
}

bool is_protected_from_oom() {
  int value = 0;
  std::ifstream{"/proc/self/oom_score_adj"} >> value;
  return value < 0;
}

void leave_oom_protection() {
  prctl(PR_SET_DUMPABLE, 1);  // otherwise root owns the file
  std::ofstream{"/proc/self/oom_score_adj"} << "0" << std::flush;
}

}  // namespace lictor::exec
