#include "app/state_dir.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "app/reload.h"
#include "skip.h"
#include "temporary_folder.h"
#include "unit/contains.h"
#include "unit/refusal.h"

namespace lictor::app {
namespace {

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

TEST_CASE("a root daemon takes no state_dir of another user") {
  if (::geteuid() != 0) return;
  const unit::TemporaryFolder folder;
  const std::string path = folder / "state";
  REQUIRE(mkdir(path.c_str(), 0750) == 0);
  REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  CHECK(contains(refusal_of(lock_state_dir(path, {})).message, "belongs to nobody"));
  CHECK_FALSE(std::filesystem::exists(path + "/lock"));
}

TEST_CASE("the owner of another user's state_dir is named") {
  const unit::TemporaryFolder folder;
  CHECK(state_dir_owner(folder.path()).empty());
  CHECK(state_dir_owner(folder / "none").empty());
  if (!is_root()) return;
  REQUIRE(chown(folder.path().c_str(), 4'000'000'000, 0) == 0);
  CHECK(state_dir_owner(folder.path()) == "user 4000000000");
}

TEST_CASE("a state_dir that cannot be made or written to is named before the daemon starts") {
  const unit::TemporaryFolder folder;
  CHECK(state_dir_fault(folder.path()).empty());
  CHECK(state_dir_fault(folder / "none/nor/this").empty());
  { const std::ofstream file{folder / "file"}; }
  CHECK(contains(state_dir_fault(folder / "file"), "file: Not a directory; state_dir must be"));
  CHECK(contains(state_dir_fault(folder / "file/state"), "file/state: Not a directory"));
  if (::geteuid() == 0) return;
  CHECK(contains(state_dir_fault("/no-such/state"), "cannot make /no-such/state: Permission"));
}

namespace {

int end_of(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

// Leaves the lock file of a daemon that is killed together with its warden.
void leave_lock(const unit::TemporaryFolder& folder) {
  const pid_t daemon = fork();
  if (daemon == 0) {
    const auto lock = lock_state_dir(folder.path(), Duration::zero());
    _exit(lock && note_run(folder.path(), *lock, "0123") ? 0 : 1);
  }
  REQUIRE(end_of(daemon) == 0);
}

// A job of that daemon.
pid_t start_job(std::vector<const char*> arguments) {
  arguments.push_back(nullptr);
  const std::array<const char*, 2> environment{"LICTOR_RUN=0123-1", nullptr};
  pid_t job = 0;
  REQUIRE(posix_spawnp(&job, arguments.front(), nullptr, nullptr,
                       const_cast<char* const*>(arguments.data()),
                       const_cast<char* const*>(environment.data())) == 0);
  return job;
}

std::string contents(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST_CASE("jobs of a daemon that was killed with its warden are killed, other daemons' are not") {
  const unit::TemporaryFolder folder;
  leave_lock(folder);
  const pid_t job = start_job({"sleep", "300"});
  {
    const unit::TemporaryFolder copied;
    std::filesystem::copy_file(folder / "lock", copied / "lock");
    CHECK(lock_state_dir(copied.path(), Duration::zero()));
    CHECK(waitpid(job, nullptr, WNOHANG) == 0);  // its daemon may live
  }
  CHECK(lock_state_dir(folder.path(), Duration::zero()));
  CHECK(WTERMSIG(end_of(job)) == SIGKILL);
}

TEST_CASE("jobs left in a pid namespace of their own are killed, too") {
  if (!is_root()) return;
  const unit::TemporaryFolder folder;
  leave_lock(folder);
  const pid_t job = start_job({"unshare", "--pid", "--fork", "setsid", "sleep", "300"});
  const std::string list = "/proc/" + std::to_string(job) + "/task/" + std::to_string(job);
  std::string inner;
  while (inner.empty() && waitpid(job, nullptr, WNOHANG) == 0) {
    std::istringstream{contents(list + "/children")} >> inner;
    std::this_thread::yield();
  }
  if (inner.empty()) return tell_skipped("no pid namespace can be made here");
  CHECK(lock_state_dir(folder.path(), Duration::zero()));
  CHECK(WTERMSIG(end_of(job)) == SIGKILL);
  CHECK(contents("/proc/" + inner + "/environ").empty());  // gone, or a zombie
}

// Requests a reload on the loop, as a signal does.
void ask(runtime::Loop& loop, Reloader& reloader) {
  REQUIRE(loop.post([&] { reloader.request(); }));
}

}  // namespace

TEST_CASE("a reload loads on its own thread and is applied on the loop's thread") {
  const auto loop = *runtime::Loop::create();
  std::thread::id loaded_on;
  std::thread::id applied_on;
  Reloader reloader{*loop,
                    [&]() -> Reloader::Apply {
                      loaded_on = std::this_thread::get_id();
                      return [&] { applied_on = std::this_thread::get_id(); };
                    },
                    [&] { loop->stop(); }};
  ask(*loop, reloader);
  loop->run();
  CHECK(applied_on == std::this_thread::get_id());
  CHECK(loaded_on != applied_on);
  CHECK_FALSE(reloader.busy());
}

TEST_CASE("requests during a reload lead to one more, after it; the loop goes on meanwhile") {
  const auto loop = *runtime::Loop::create();
  std::promise<void> readable;
  std::shared_future<void> wait{readable.get_future()};
  std::atomic<int> loads = 0;
  std::string order;
  Reloader reloader{*loop,
                    [&]() -> Reloader::Apply {
                      wait.wait();
                      const int number = ++loads;
                      return [&order, number] { order += std::to_string(number); };
                    },
                    [&] {
                      order += "idle";
                      loop->stop();
                    }};
  for (int i = 0; i < 3; ++i) ask(*loop, reloader);
  REQUIRE(loop->post([&] {
    CHECK(reloader.busy());
    CHECK(loads == 0);
    readable.set_value();
  }));
  loop->run();
  CHECK(order == "12idle");
}

TEST_CASE("a configuration loaded after the loop's end is dropped") {
  const auto loop = *runtime::Loop::create();
  std::promise<void> readable;
  bool applied = false;
  {
    Reloader reloader{*loop,
                      [&]() -> Reloader::Apply {
                        readable.get_future().wait();
                        return [&] { applied = true; };
                      },
                      [] {}};
    ask(*loop, reloader);
    REQUIRE(loop->post([&] { loop->stop(); }));
    loop->run();
    CHECK(reloader.busy());
    readable.set_value();
  }
  CHECK_FALSE(applied);
}

}  // namespace lictor::app
