#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace lictor::unit {

/// A folder of its own, of mode 0700, removed at the end with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "lictor-unit-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::system_error{errno, std::generic_category(), "cannot make " + path_};
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path_ + '/' + std::string{name};
  }
  /// Writes the file in place of what was there; returns its path.
  std::string write(std::string_view name, std::string_view text) const {
    const std::string file = *this / name;
    std::ofstream{file, std::ios::trunc | std::ios::binary} << text;
    return file;
  }

 private:
  std::string path_;
};

}  // namespace lictor::unit
