#include "app/state_dir.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
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

TEST_CASE(
    "what is left of a daemon that was killed with its warden is killed, unless it is another's") {
  const unit::TemporaryFolder folder;
  const auto end_of = [](pid_t pid) {
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return status;
  };
  const pid_t warden = fork();
  if (warden == 0) _exit(0);
  end_of(warden);
  const pid_t daemon = fork();
  if (daemon == 0) {
    const auto lock = lock_state_dir(folder.path(), Duration::zero());
    _exit(lock && note_warden(folder.path(), *lock, warden) ? 0 : 1);
  }
  REQUIRE(end_of(daemon) == 0);

  const std::string mark = "LICTOR_RUN=" + std::to_string(warden) + "-1";
  const std::array<const char*, 3> arguments{"sleep", "300", nullptr};
  const std::array<const char*, 2> environment{mark.c_str(), nullptr};
  pid_t job = 0;
  REQUIRE(posix_spawn(&job, "/bin/sleep", nullptr, nullptr,
                      const_cast<char* const*>(arguments.data()),
                      const_cast<char* const*>(environment.data())) == 0);
  {
    const unit::TemporaryFolder copied;
    std::filesystem::copy_file(folder / "lock", copied / "lock");
    CHECK(lock_state_dir(copied.path(), Duration::zero()));
    CHECK(waitpid(job, nullptr, WNOHANG) == 0);  // its daemon may live
  }
  CHECK(lock_state_dir(folder.path(), Duration::zero()));
  CHECK(WTERMSIG(end_of(job)) == SIGKILL);
}

TEST_SUITE_END();

}  // namespace lictor::app
