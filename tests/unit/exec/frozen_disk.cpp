#include "frozen_disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>

#include "base/unique_fd.h"
#include "skip.h"

namespace lictor::exec::test {
namespace {

constexpr unsigned kLongestFreezeSeconds = 45;

}  // namespace

std::unique_ptr<FrozenDisk> FrozenDisk::make() {
  if (!is_root()) return nullptr;
  std::unique_ptr<FrozenDisk> disk{new FrozenDisk};
  disk->path_ = disk->folder_ / "mount";
  const std::string image = disk->folder_ / "image";
  const std::string line = "truncate -s 16M " + image + " && mkfs.ext4 -q " + image + " && mkdir " +
                           disk->path_ + " && mount -o loop " + image + " " + disk->path_ +
                           " && chmod 755 " + disk->path_;
  disk->mounted_ = std::system(("(" + line + ") >/dev/null 2>&1").c_str()) == 0;
  if (disk->mounted_) {
    disk->freeze();
    const bool frozen = disk->frozen_;
    disk->thaw();
    if (frozen) return disk;
  }
  tell_skipped("no file system can be mounted on a loop device and frozen here");
  return nullptr;
}

FrozenDisk::~FrozenDisk() {
  thaw();
  // Lazily: whoever has waited for it may still have a file open.
  if (mounted_) CHECK(std::system(("umount -l " + path_).c_str()) == 0);
}

void FrozenDisk::freeze() {
  const UniqueFd root{open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  frozen_ = ioctl(root.get(), FIFREEZE, 0) == 0;
  if (!frozen_) return;
  // A process that waits for a frozen disk cannot be killed: so a test that fails must not keep it.
  rescuer_ = fork();
  if (rescuer_ != 0) return;
  sleep(kLongestFreezeSeconds);
  ioctl(root.get(), FITHAW, 0);
  _exit(0);
}

void FrozenDisk::thaw() {
  if (!frozen_) return;
  const UniqueFd root{open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  frozen_ = ioctl(root.get(), FITHAW, 0) != 0 && errno != EINVAL;  // it was thawed already
  kill(rescuer_, SIGKILL);
  waitpid(rescuer_, nullptr, 0);
}

}  // namespace lictor::exec::test
