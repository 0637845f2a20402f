#include "app/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "base/text.h"

namespace lictor::app {
namespace {

namespace fs = std::filesystem;

// In a user namespace, what belongs to users outside shows as this one's. None of them is in here.
std::optional<uid_t> outsiders() {
  std::ifstream map{"/proc/self/uid_map"};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  const bool is_first = !(map >> inside >> outside >> count) || count >= 0xffffffffU;
  uid_t shown_as = 0;
  if (is_first || !(std::ifstream{"/proc/sys/kernel/overflowuid"} >> shown_as)) return std::nullopt;
  return shown_as;
}

// What others may do to it, in words; empty: nothing.
std::string fault_of(const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != outsiders())
    return "belongs to another user than root";
  const bool is_shared = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_shared && !S_ISLNK(status.st_mode)) {
    return "may be written by others than root";
  }
  return {};
}

// `path` and every folder above it.
std::set<fs::path> with_parents(fs::path path) {
  std::set<fs::path> all;
  for (; !path.empty() && all.insert(path).second; path = path.parent_path()) {
  }
  return all;
}

}  // namespace

Result<void> check_trusted(const std::string& what, const std::string& path,
                           const std::string& does) {
  struct stat status {};
  if (::geteuid() != 0 || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::error_code error;
  std::set<fs::path> places = with_parents(fs::absolute(path, error).lexically_normal());
  places.merge(with_parents(fs::canonical(path, error)));
  for (const fs::path& place : places) {
    if (::lstat(place.c_str(), &status) != 0) continue;
    const std::string fault = fault_of(status);
    if (fault.empty()) continue;
    const std::string name = excerpt(place.string(), 200);
    return fail(ErrorCode::kInvalid, what + ": " + (S_ISDIR(status.st_mode) ? "the folder " : "") +
                                         name + ' ' + fault +
                                         ", and lictor runs as root: they could make root " + does +
                                         "; chown root and chmod go-w " + name);
  }
  return {};
}

}  // namespace lictor::app
