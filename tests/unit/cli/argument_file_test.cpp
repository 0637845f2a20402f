#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "cli/input.h"

namespace lictor::cli {
namespace {

TEST_CASE("an argument is its own text or, with @, the whole file") {
  CHECK(read_argument("--para-json", "{}").value() == "{}");
  std::string name = std::filesystem::temp_directory_path() / "lictor-argument-XXXXXX";
  const int fd = mkstemp(name.data());
  REQUIRE(fd >= 0);
  close(fd);
  const std::string text(10'000, 'x');
  std::ofstream{name} << text << '\n';
  const auto read = read_argument("--para-json", "@" + name);
  std::filesystem::remove(name);
  CHECK(read.value() == text + "\n");
}

TEST_CASE("the error for a missing file names the flag and the file") {
  for (const std::string name : {"/", "/nonexistent"}) {
    const auto read = read_argument("--para-json", "@" + name);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kInvalid);
    CHECK(read.error().message.starts_with("--para-json: cannot read " + name + ": "));
  }
}

}  // namespace
}  // namespace lictor::cli
