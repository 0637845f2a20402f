#include "exec/cgroups.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/errno_text.h"
#include "base/read_file.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

constexpr std::string_view kPrefix = "lictor.";

// An empty group takes about 10 kB of kernel memory.
constexpr std::size_t kMostFree = 256;

// The process's group in the version 2 hierarchy: "0::/system.slice/lictor.service".
std::optional<std::string> path_of(const std::string& pid) {
  std::ifstream groups{"/proc/" + pid + "/cgroup"};
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return std::nullopt;
}

// The folder of the group `path`, which lies below a mount of type cgroup2. The root of the mount
// may itself be a group ("34 24 0:29 <root> <mount point> ... - cgroup2 ...").
std::optional<std::string> folder_of(const std::string& path) {
  std::ifstream mounts{"/proc/self/mountinfo"};
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields{line};
    std::string id, parent, device, root, point;
    fields >> id >> parent >> device >> root >> point;
    if (root == "/") root.clear();
    if (path == root || path.starts_with(root + "/")) return point + path.substr(root.size());
  }
  return std::nullopt;
}

// Root may write to every group, but systemd manages its groups unless it marks them as delegated.
bool is_delegated(int folder) {
  if (geteuid() != 0 || access("/run/systemd/system", F_OK) != 0) return true;
  char mark = '0';
  return fgetxattr(folder, "trusted.delegate", &mark, 1) == 1 && mark == '1';
}

template <class Function>
void for_each_folder(int parent, const Function& function) {
  const int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list{fd < 0 ? nullptr : fdopendir(fd), closedir};
  while (const dirent* entry = list ? readdir(list.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") function(entry->d_name);
  }
}

UniqueFd open_group(int parent, const char* name) {
  return UniqueFd{openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
}

// Removes the group and its subgroups, as far as they are empty.
void remove_tree(int parent, const char* name) {
  const UniqueFd folder = open_group(parent, name);
  if (!folder) return;
  for_each_folder(folder.get(), [&](const char* child) { remove_tree(folder.get(), child); });
  unlinkat(parent, name, AT_REMOVEDIR);
}

// The processes in the group and in its subgroups, which a job may have made.
void add_members(int folder, std::vector<pid_t>& pids) {
  constexpr std::size_t kMostBytes = 64U << 20U;
  const UniqueFd file{openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC)};
  std::istringstream members{file ? read_up_to(file.get(), kMostBytes).value_or("") : ""};
  for (pid_t pid = 0; members >> pid;) pids.push_back(pid);
  for_each_folder(folder, [&](const char* child) {
    if (const UniqueFd group = open_group(folder, child)) add_members(group.get(), pids);
  });
}

std::string name_of(pid_t daemon, const std::string& run_id) {
  return std::string{kPrefix} + std::to_string(daemon) + '.' + run_id;
}

void kill_below(int folder) {
  const UniqueFd file{openat(folder, "cgroup.kill", O_WRONLY | O_CLOEXEC)};
  if (file) (void)!write(file.get(), "1", 1);
}

}  // namespace

Cgroups Cgroups::create(const std::string& run_id) {
  Cgroups groups;
  const auto without = [](std::string why) {
    Cgroups none;
    none.absence_ = std::move(why);
    return none;
  };
  const auto path = path_of("self");
  const auto folder = path ? folder_of(*path) : std::nullopt;
  if (!folder) return without("no cgroup v2 is mounted");
  groups.own_.reset(open(folder->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!groups.own_) return without("cannot open " + *folder + ": " + errno_text());
  if (!is_delegated(groups.own_.get())) {
    return without("systemd has not delegated " + *folder + " (Delegate=yes)");
  }
  groups.name_ = name_of(getpid(), run_id);
  if (mkdirat(groups.own_.get(), groups.name_.c_str(), 0755) != 0 && errno != EEXIST) {
    return without("cannot make a cgroup in " + *folder + ": " + errno_text());
  }
  groups.top_ = open_group(groups.own_.get(), groups.name_.c_str());
  if (!groups.top_ || faccessat(groups.top_.get(), "cgroup.kill", W_OK, AT_EACCESS) != 0) {
    groups.remove();
    return without("no cgroup.kill, which came with Linux 5.14");
  }
  groups.top_path_ = (*path == "/" ? "" : *path) + "/" + groups.name_ + "/";
  return groups;
}

std::vector<pid_t> Cgroups::kill_group_of(pid_t daemon, const std::string& run_id) {
  const auto path = path_of("self");
  const auto own = path ? folder_of(*path) : std::nullopt;
  if (!own) return {};
  const UniqueFd parent{open(own->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const std::string name = name_of(daemon, run_id);
  const UniqueFd top = open_group(parent.get(), name.c_str());
  if (!top) return {};
  kill_below(top.get());
  std::vector<pid_t> left;
  add_members(top.get(), left);
  if (left.empty()) remove_tree(parent.get(), name.c_str());
  return left;
}

std::optional<Cgroups::Group> Cgroups::take() {
  if (!available()) return std::nullopt;
  if (!free_.empty()) {
    Group group = std::move(free_.back());
    free_.pop_back();
    return group;
  }
  const Number number = next_++;
  const std::string name = std::to_string(number);
  if (mkdirat(top_.get(), name.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
  UniqueFd folder = open_group(top_.get(), name.c_str());
  if (!folder) return std::nullopt;
  return Group{number, std::move(folder)};
}

void Cgroups::retire(Group group) {
  // Since Linux 6.14, clone3 into a group that was ever killed fails: the child is killed.
  if (!group.killed && free_.size() < kMostFree) {
    free_.push_back(std::move(group));
  } else {
    unlinkat(top_.get(), std::to_string(group.number).c_str(), AT_REMOVEDIR);
  }
}

std::optional<Cgroups::Number> Cgroups::group_of(pid_t pid) const {
  if (!available()) return std::nullopt;
  const auto path = path_of(std::to_string(pid));
  if (!path || !path->starts_with(top_path_)) return std::nullopt;
  // A job may have made subgroups.
  const std::string_view below = std::string_view{*path}.substr(top_path_.size());
  return to_number<Number>(below.substr(0, below.find('/')));
}

void Cgroups::kill(Group& group) const {
  group.killed = true;
  kill_below(group.folder.get());
}

void Cgroups::remove() {
  free_.clear();
  if (!name_.empty()) remove_tree(own_.get(), name_.c_str());
}

}  // namespace lictor::exec
