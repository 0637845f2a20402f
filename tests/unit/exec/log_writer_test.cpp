#include "exec/log_writer.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <future>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "exec/privileges.h"
#include "skip.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

// A writer, and an order that stands for a disk that does not answer.
class StuckWriter {
 public:
  StuckWriter() {
    CHECK_FALSE(writer.run([moved = moves_.get_future().share()] { moved.wait(); }));
  }
  ~StuckWriter() { move(); }
  void move() {
    if (!moved_.exchange(true)) moves_.set_value();
  }

  [[nodiscard]] std::vector<std::string> warnings() {
    const std::lock_guard lock{mutex_};
    return warnings_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::promise<void> moves_;
  std::atomic<bool> moved_ = false;

 public:
  LogWriter writer{[this](std::string text) {
    const std::lock_guard lock{mutex_};
    warnings_.push_back(std::move(text));
  }};
};

// A small file system of its own on a loop device, which can stand still: writers then wait. Needs
// root and loop devices.
class FrozenDisk {
 public:
  // Null, reported as skipped, if there can be none.
  [[nodiscard]] static std::unique_ptr<FrozenDisk> make();
  ~FrozenDisk();
  FrozenDisk(const FrozenDisk&) = delete;
  FrozenDisk& operator=(const FrozenDisk&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void freeze();
  void thaw();

 private:
  FrozenDisk() = default;

  TemporaryFolder folder_;
  std::string path_;
  bool mounted_ = false;
  bool frozen_ = false;
  pid_t rescuer_ = 0;
};

constexpr unsigned kLongestFreezeSeconds = 45;

std::unique_ptr<FrozenDisk> FrozenDisk::make() {
  if (!is_root()) return nullptr;
  std::unique_ptr<FrozenDisk> disk{new FrozenDisk};
  disk->path_ = disk->folder_ / "mount";
  const std::string image = disk->folder_ / "image";
  const std::string line = "truncate -s 16M " + image + " && mkfs.ext4 -q " + image + " && mkdir " +
                           disk->path_ + " && mount -o loop " + image + " " + disk->path_ +
                           " && chmod 755 " + disk->path_;
  disk->mounted_ = std::system(("(" + line + ") >/dev/null 2>&1").c_str()) == 0;
  if (disk->mounted_) {
    disk->freeze();
    const bool frozen = disk->frozen_;
    disk->thaw();
    if (frozen) return disk;
  }
  tell_skipped("no file system can be mounted on a loop device and frozen here");
  return nullptr;
}

FrozenDisk::~FrozenDisk() {
  thaw();
  // Unmount lazily: a thread that waited for it may still have a file open.
  if (mounted_) CHECK(std::system(("umount -l " + path_).c_str()) == 0);
}

void FrozenDisk::freeze() {
  const UniqueFd root{open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  frozen_ = ioctl(root.get(), FIFREEZE, 0) == 0;
  if (!frozen_) return;
  // A process that waits for a frozen disk cannot be killed: so a test that fails must not keep it.
  rescuer_ = fork();
  if (rescuer_ != 0) return;
  sleep(kLongestFreezeSeconds);
  ioctl(root.get(), FITHAW, 0);
  _exit(0);
}

void FrozenDisk::thaw() {
  if (!frozen_) return;
  const UniqueFd root{open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  frozen_ = ioctl(root.get(), FITHAW, 0) != 0 && errno != EINVAL;  // it was thawed already
  kill(rescuer_, SIGKILL);
  waitpid(rescuer_, nullptr, 0);
}

}  // namespace

TEST_CASE("a log that the disk does not take in time is reported as lost; later ones are kept") {
  const TemporaryFolder dir;
  StuckWriter stuck;
  const auto log = std::make_shared<LogWriter::Log>(dir / "a/1.log", 100);
  stuck.writer.write(log, "hello\n");
  const LogOutcome outcome = stuck.writer.finish(log);
  CHECK(outcome.error == "cannot write " + (dir / "a/1.log") + ": the disk stands still");
  REQUIRE(stuck.warnings().size() == 1);
  CHECK(stuck.warnings().front() == outcome.error + "; the job goes on, but its output is lost");
  stuck.move();
  REQUIRE(eventually([&] { return stuck.writer.run([] {}); }));
  CHECK(contents(dir / "a/1.log") == "hello\n");

  int tries = 1;
  CHECK(eventually([&] {
    const std::string path = dir / ("a/" + std::to_string(++tries) + ".log");
    const auto next = std::make_shared<LogWriter::Log>(path, 100);
    stuck.writer.write(next, "hello\n");
    return stuck.writer.finish(next).bytes != 0 && contents(path) == "hello\n";
  }));
}

TEST_CASE("output that waits for a disk is bounded, and more of it is reported as lost at once") {
  const TemporaryFolder dir;
  StuckWriter stuck;
  const auto active = std::make_shared<ActiveLogs>();
  const auto log = std::make_shared<LogWriter::Log>(dir / "1.log", 1U << 30U, active);
  const std::string mebibyte(1U << 20U, 'x');
  std::size_t written = 0;
  for (; written < 100 && active->newest_error().empty(); ++written)
    stuck.writer.write(log, mebibyte);
  CHECK(active->newest_error().ends_with("the disk stands still"));
  CHECK(written * mebibyte.size() <= LogWriter::kMostBytes + mebibyte.size());
  const Instant before = boot_now();
  for (int i = 0; i < 100; ++i) CHECK_FALSE(stuck.writer.run([] {}));  // none of them waits
  CHECK(boot_now() - before < 5s);
  stuck.move();
  REQUIRE(eventually([&] { return stuck.writer.run([] {}); }));
  CHECK_FALSE(stuck.writer.finish(log).error.empty());
}

TEST_CASE("while the disk of logs and handover stands still, programs start and end") {
  Rig rig;
  const auto disk = FrozenDisk::make();
  if (!disk) return;
  const TemporaryFolder dir;
  ProcessOptions options{
      .argv = shell("echo up; while [ ! -e $1 ]; do sleep 0.01; done; echo hello", {dir / "go"}),
      .directory = "/",
      .user = find_user("daemon").value(),
      .log_directory = disk->path() + "/logs",
      .scratch_directory = disk->path() + "/scratch"};
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  const auto good = rig.runner(options);
  options.argv = shell("echo no; exit 3");
  const auto bad = rig.runner(options);
  const auto run = [&](ProcessRunner& runner, std::uint64_t id) {
    REQUIRE(runner.start(attempt(id), Instant::max(), rig.exits.callback()));
    return rig.of(id);
  };
  rig.start(*good, 1);
  const auto first_log = [&] { return contents(options.log_directory + "/oracle/7.1.1001.log"); };
  REQUIRE(eventually([&] { return first_log() == "up\n"; }));
  disk->freeze();
  write_file(dir / "go", "");
  CHECK(rig.of(1).output_tail == "up\nhello\n");
  CHECK(run(*good, 2).ending == Ending::kDone);
  CHECK(run(*bad, 3).error == "exit status 3: no");
  CHECK(rig.run({"/bin/true"}, attempt(4)).ending == Ending::kDone);
  CHECK(rig.host->responds(boot_now()));
  CHECK(options.active_logs->newest_error().ends_with("the disk stands still"));
  REQUIRE(rig.warnings().size() == 1);
  CHECK(rig.warnings().front().ends_with("the job goes on, but its output is lost"));
  disk->thaw();
  REQUIRE(eventually(
      [&] { return contents(options.log_directory + "/oracle/7.1.1001.log") == "up\nhello\n"; }));
  CHECK(rig.run(options, attempt(5)).error == "exit status 3: no");
  CHECK(contents(options.log_directory + "/oracle/7.1.1005.log") == "no\n");
  rig.close();
}

}  // namespace lictor::exec::test
