#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "exec/output_log.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// In 2015, so that by the clock of the pruner's thread all of it is old.
constexpr WallTime kNow{std::chrono::hours{400'000}};

struct Scene {
  // Written `age` before kNow.
  std::string add(const std::string& name, std::chrono::seconds age, std::size_t bytes = 10) {
    const std::string path = folder / name;
    fs::create_directories(fs::path{path}.parent_path());
    write_file(path, std::string(bytes, 'x'));
    const auto when = std::chrono::floor<std::chrono::seconds>(kNow) - age;
    const timespec time{static_cast<time_t>(when.time_since_epoch().count()), 0};
    const timespec times[2] = {time, time};
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
    return path;
  }
  Pruned prune(Duration max_age, std::uint64_t max_bytes) {
    return prune_logs(folder.path(), {max_age, max_bytes}, kNow, active);
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return fs::exists(fs::symlink_status(folder / name));
  }

  TemporaryFolder folder;
  ActiveLogs active;
};

}  // namespace

TEST_SUITE_BEGIN("exec");

TEST_CASE("logs that are too old go, in every queue's folder") {
  Scene scene;
  scene.add("q/1.1.1.log", 3h);
  scene.add("q/2.1.2.log", 1h);
  scene.add("r/3.1.3.log", 3h);
  const Pruned pruned = scene.prune(2h, 1'000'000);
  CHECK(pruned.removed == 2);
  CHECK(pruned.kept == 1);
  CHECK(pruned.removed_bytes == 2 * pruned.kept_bytes);
  CHECK(pruned.error.empty());
  CHECK(scene.has("q/2.1.2.log"));
  CHECK_FALSE(scene.has("q/1.1.1.log"));
  CHECK_FALSE(scene.has("r/3.1.3.log"));
}

TEST_CASE("over the size, the oldest of all queues go first, until it fits") {
  Scene scene;
  scene.add("q/new.1.3.log", 1min, 100);
  scene.add("r/oldest.1.1.log", 3min, 100);
  scene.add("q/older.1.2.log", 2min, 100);
  const std::uint64_t all = scene.prune(1000h, 1'000'000'000).kept_bytes;
  CHECK(all >= 3 * 4096);  // on the disk, where most of it is room for more
  CHECK(scene.prune(1000h, all).removed == 0);
  CHECK(scene.prune(1000h, all - 1).removed == 1);
  CHECK_FALSE(scene.has("r/oldest.1.1.log"));
  CHECK(scene.prune(1000h, 0).removed == 2);
}

TEST_CASE("the log of a running attempt stays, however old, and others make room for it") {
  Scene scene;
  scene.active.add(scene.add("q/runs.1.1.log", 100h, 100));
  scene.add("q/ended.1.2.log", 1h, 100);
  const Pruned pruned = scene.prune(2h, 100);
  CHECK(pruned.removed == 1);
  CHECK(scene.has("q/runs.1.1.log"));
  CHECK_FALSE(scene.has("q/ended.1.2.log"));
}

TEST_CASE("nothing but logs is touched, and no link is followed") {
  Scene scene;
  const TemporaryFolder elsewhere;
  write_file(elsewhere / "other.1.1.log", "x");
  scene.add("q/notes.txt", 100h);
  scene.add("top.1.1.log", 100h);
  fs::create_directories(scene.folder / "q/folder.1.1.log");
  fs::create_symlink(elsewhere / "other.1.1.log", scene.folder / "q/link.1.1.log");
  fs::create_symlink(elsewhere.path(), scene.folder / "linked");
  const Pruned pruned = scene.prune(1h, 0);
  CHECK(pruned.removed == 0);
  CHECK(pruned.error.empty());
  CHECK(scene.has("q/notes.txt"));
  CHECK(scene.has("top.1.1.log"));
  CHECK(scene.has("q/folder.1.1.log"));
  CHECK(scene.has("q/link.1.1.log"));
  CHECK(fs::exists(elsewhere / "other.1.1.log"));
}

TEST_CASE("a folder that is not there yet is no error") {
  const TemporaryFolder folder;
  const Pruned pruned = prune_logs(folder / "logs", {1h, 0}, kNow, ActiveLogs{});
  CHECK(pruned.error.empty());
  CHECK(pruned.kept == 0);
}

TEST_CASE("the pruner prunes when it begins, and ends at once") {
  Scene scene;
  scene.add("q/1.1.1.log", 3h);
  std::promise<Pruned> first;
  const std::jthread pruner =
      start_log_pruner(scene.folder.path(), {1h, 1000}, std::make_shared<ActiveLogs>(),
                       [&](const Pruned& pruned) { first.set_value(pruned); });
  CHECK(first.get_future().get().removed == 1);
}

TEST_CASE("the pruner prunes again once much was written") {
  Scene scene;
  const auto active = std::make_shared<ActiveLogs>();
  constexpr std::uint64_t kMiB = 1U << 20U;
  std::promise<void> first;
  std::promise<Pruned> second;
  int passes = 0;
  const std::jthread pruner = start_log_pruner(scene.folder.path(), {24h * 36500, 16 * kMiB},
                                               active, [&](const Pruned& pruned) {
                                                 if (++passes == 1) first.set_value();
                                                 if (passes == 2) second.set_value(pruned);
                                               });
  first.get_future().get();
  for (int i = 0; i < 17; ++i) {
    const std::string path =
        scene.add("q/" + std::to_string(i) + ".1.1.log", 60min - 1min * i, kMiB);
    if (i == 16) active->remove(path, {.bytes = kMiB});
  }
  const Pruned pruned = second.get_future().get();
  CHECK(pruned.removed == 1);
  CHECK_FALSE(scene.has("q/0.1.1.log"));
}

TEST_SUITE_END();

}  // namespace lictor::exec::test
