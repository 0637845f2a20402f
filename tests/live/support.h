#pragma once

// Needs of every live test: waiting by condition, a folder of its own, a free port, and texts that
// are shown when a test fails.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "unit/contains.h"

namespace lictor::live {

using namespace std::chrono_literals;
using nlohmann::json;

/// Far beyond what anything takes: a test that waits this long has failed, however slow the
/// machine. LICTOR_LIVE_PATIENCE sets another number of seconds: a short one brings stalls to
/// light.
[[nodiscard]] std::chrono::milliseconds patience();

/// The whole number in the variable `name` of our environment.
[[nodiscard]] std::uint64_t from_environment(const char* name, std::uint64_t otherwise);

/// Asks until `condition` holds or `limit` is over; returns its last value.
[[nodiscard]] bool eventually(const std::function<bool()>& condition,
                              std::chrono::milliseconds limit = patience());
/// Whether `condition` holds all the time for `span`.
[[nodiscard]] bool throughout(std::chrono::milliseconds span,
                              const std::function<bool()>& condition);

/// CLOCK_MONOTONIC, which all processes of this host share.
[[nodiscard]] std::int64_t monotonic_ns();
[[nodiscard]] double seconds_between(std::int64_t from_ns, std::int64_t until_ns);

/// A folder of its own; removed at the end, and by the next run if this one is killed.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// In lower case.
[[nodiscard]] std::string lower(std::string text);
[[nodiscard]] std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

/// A port of the loopback on which nobody listens, below those that the system gives to clients, so
/// that a server that is restarted finds it free again. Given to no other test until this program
/// ends.
[[nodiscard]] int free_port();

/// Kept until the end of the test case, and printed if it fails.
void keep_for_failure(const std::string& title, const std::string& text);
void print_kept();
void forget_kept();

}  // namespace lictor::live
