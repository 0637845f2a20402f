#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "temporary_folder.h"

namespace lictor::exec::test {

/// A small file system of its own on a loop device, which can stand still: whoever writes to it
/// then waits. Needs root and loop devices.
class FrozenDisk {
 public:
  /// Null, and told as skipped, where there can be none.
  [[nodiscard]] static std::unique_ptr<FrozenDisk> make();
  ~FrozenDisk();
  FrozenDisk(const FrozenDisk&) = delete;
  FrozenDisk& operator=(const FrozenDisk&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void freeze();
  void thaw();

 private:
  FrozenDisk() = default;

  unit::TemporaryFolder folder_;
  std::string path_;
  bool mounted_ = false;
  bool frozen_ = false;
  pid_t rescuer_ = 0;
};

}  // namespace lictor::exec::test
