#include "app/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "skip.h"
#include "temporary_folder.h"

namespace lictor::app {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE_BEGIN("app");

TEST_CASE("the warning about a state_dir that others may write to says what to do") {
  const unit::TemporaryFolder folder;
  const auto exposure = [&](mode_t mode) {
    REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    return state_dir_exposure(folder.path());
  };
  CHECK(exposure(0755).empty());
  CHECK(exposure(0751).empty());
  CHECK(exposure(0770).empty());  // of the daemon's own group
  CHECK(contains(exposure(0777), "may be written by everybody"));
  CHECK(contains(exposure(01777), "chmod go-w " + folder.path()));
  CHECK(state_dir_exposure(folder / "none").empty());
  if (!is_root()) return;
  REQUIRE(chown(folder.path().c_str(), 0, 12'345) == 0);
  CHECK(contains(exposure(0770), "may be written by another group"));
  CHECK(exposure(0750).empty());
}

TEST_CASE("the owner of another user's state_dir is named") {
  const unit::TemporaryFolder folder;
  CHECK(state_dir_owner(folder.path()).empty());
  CHECK(state_dir_owner(folder / "none").empty());
  if (!is_root()) return;
  REQUIRE(chown(folder.path().c_str(), 4'000'000'000, 0) == 0);
  CHECK(state_dir_owner(folder.path()) == "user 4000000000");
}

TEST_SUITE_END();

}  // namespace lictor::app
