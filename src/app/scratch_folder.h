#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "base/errno_text.h"
#include "lictor/result.h"

namespace lictor::app {

/// A folder for temporary files, removed at the end of its life.
class ScratchFolder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ScratchFolder>> make(const std::string& name) {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    if (error) {
      return fail(ErrorCode::kFailed, "no folder for temporary files: " + error.message() +
                                          "; set TMPDIR to a writable one");
    }
    std::string path = (parent / (name + ".XXXXXX")).string();
    if (mkdtemp(path.data()) != nullptr) return std::make_unique<ScratchFolder>(std::move(path));
    return fail(ErrorCode::kFailed, "cannot make the folder " + path + ": " + errno_text() +
                                        "; set TMPDIR to a writable one");
  }
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace lictor::app
