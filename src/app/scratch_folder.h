#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace lictor::app {

/// A folder for temporary files, removed at the end of its life.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (name + ".XXXXXX")).string()),
        made_(mkdtemp(path_.data()) != nullptr) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// False: errno said why when it was made.
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_;
};

}  // namespace lictor::app
