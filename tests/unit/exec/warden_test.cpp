#include "exec/warden.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "exec/function_runner.h"
#include "exec/lock_keeper.h"
#include "exec/warden_log.h"
#include "support.h"
#include "unit/refusal.h"

namespace lictor::exec::test {
namespace {

// Says that it is up, then writes a heartbeat for ever.
const std::string kHeartbeat = "echo $$ > $1; while :; do echo beat >> $2; sleep 0.01; done";

ProcessOptions leased(std::vector<std::string> argv, LeaseSlot slot = 0,
                      Duration grace = ProcessOptions{}.grace) {
  ProcessOptions options{.argv = std::move(argv), .slot = slot, .grace = grace};
  return options;
}

// The lock file of a state directory, which a daemon holds.
int open_lock(const TemporaryFolder& dir) {
  const int lock = open((dir / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(lock >= 0);
  return lock;
}
bool take_lock(int lock) { return flock(lock, LOCK_EX | LOCK_NB) == 0; }

// A descriptor that is a file for a while.
class Redirected {
 public:
  Redirected(int fd, const std::string& path) : fd_(fd), saved_(dup(fd)) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, fd_);
    close(file);
  }
  ~Redirected() {
    dup2(saved_, fd_);
    close(saved_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  const int fd_;
  const int saved_;
};

}  // namespace

TEST_CASE("a lease that runs out ends its job, TERM and then KILL, though the daemon hangs") {
  const TemporaryFolder dir;
  const Instant deadline = boot_now() + 2s;
  const Duration grace = 200ms;
  MiniDaemon daemon{[&](Rig& rig) {
    rig.host->set_lease(0, deadline, grace);
    const std::string deaf = "trap 'echo term >> $3' TERM; " + kHeartbeat;
    rig.start(leased(shell(deaf, {dir / "pid", dir / "beats", dir / "term"})));
  }};
  daemon.send(SIGSTOP);
  const pid_t job = pid_in(dir / "pid");
  REQUIRE(eventually([&] { return !contents(dir / "term").empty(); }));
  CHECK(boot_now() >= deadline);
  REQUIRE(eventually([&] { return gone(job); }));
  CHECK(boot_now() >= deadline + grace);
  CHECK(boot_now() < deadline + grace + 20s);  // In time, but for a machine that is busy.
  CHECK_FALSE(contents(dir / "beats").empty());
  CHECK_FALSE(gone(daemon.pid()));  // It runs no job itself.
  CHECK_FALSE(gone(daemon.warden()));
}

TEST_CASE("a lease that is extended goes on, and a store on the board is enough for it") {
  RigInFolder rig;
  const Instant first = boot_now() + 1s;
  rig.host->set_lease(3, first, 100ms);
  rig.start(leased(shell(kHeartbeat, {rig.dir / "pid", rig.dir / "beats"}), 3));
  const pid_t job = pid_in(rig.dir / "pid");
  const Instant second = first + 500ms;
  const bool told = rig.board.extend(3, second, 100ms);
  // If the machine was so busy that the store came too late, this test shows nothing.
  if (told || rig.has(1)) return;
  CHECK_FALSE(rig.board.extend(3, second, 100ms));
  CHECK(rig.of(1).error.starts_with("stopped since the lease ran out: killed by"));
  CHECK(boot_now() >= second);
  CHECK(gone(job));
}

TEST_CASE("a lease that is given up starts nothing more, and ends its jobs when it would have") {
  RigInFolder rig;
  const Instant deadline = boot_now() + 1s;
  rig.host->set_lease(0, deadline, 100ms);
  const auto runner = rig.start(leased(shell(kHeartbeat, {rig.dir / "pid", rig.dir / "beats"})));
  const pid_t job = pid_in(rig.dir / "pid");
  rig.host->clear_lease(0);
  rig.start(*runner, 2);
  const Exit late = rig.of(2);
  CHECK(late.ending == Ending::kStopped);
  CHECK(late.error == "the lease ran out before it started");
  CHECK(rig.of(1).ending == Ending::kStopped);
  CHECK(boot_now() >= deadline);
  CHECK(gone(job));
}

TEST_CASE("a deadline that is moved nearer counts") {
  Rig rig;
  rig.host->set_lease(0, boot_now() + 1h, 100ms);
  rig.start(leased({"/bin/sleep", "1000"}));
  rig.host->set_lease(0, boot_now() + 50ms, 100ms);
  CHECK(rig.of(1).ending == Ending::kStopped);
}

TEST_CASE("leases that run out one right after the other all end their jobs then") {
  Rig rig;
  const Instant first = boot_now() + 2s;
  for (LeaseSlot slot = 0; slot < rig.board.slots(); ++slot) {
    rig.host->set_lease(slot, first + slot * 100us, 1h);
    rig.start(leased({"/bin/sleep", "1000"}, slot), attempt(slot + 1));
  }
  for (LeaseSlot slot = 0; slot < rig.board.slots(); ++slot) {
    CHECK(rig.of(slot + 1).ending == Ending::kStopped);
  }
}

TEST_CASE("the end of one lease touches neither another's jobs nor those that may outlive theirs") {
  RigInFolder rig{WardenOptions{.cgroups = false}};
  rig.host->set_lease(0, boot_now() + 1s, 0ms);
  rig.host->set_lease(1, boot_now() + 1h, 0ms);
  const std::vector<std::string> sleeper{"/bin/sleep", "1000"};
  // The warden finds it at the end of that lease, and has yet to learn whose it is.
  const auto with_stray =
      shell("(setsid sh -c 'echo $$ > $1; exec sleep 1000' sh $1 &); exec sleep 1000",
            {rig.dir / "stray"});
  ProcessOptions outlives = leased(sleeper, 0);
  outlives.ends_with_lease = false;
  rig.start(leased(sleeper, 0));
  rig.start(leased(with_stray, 1), attempt(2));
  const pid_t stray = pid_in(rig.dir / "stray");
  rig.start(outlives, attempt(3));
  const auto unleased = rig.start(sleeper, attempt(4));
  CHECK(rig.of(1).ending == Ending::kStopped);
  // A round trip through the warden: jobs to be ended with it would have ended.
  CHECK(rig.run({"/bin/true"}, attempt(5)).ending == Ending::kDone);
  CHECK_FALSE(gone(stray));
  for (std::uint64_t id = 2; id <= 4; ++id) {
    CHECK_FALSE(rig.has(id));
    unleased->stop(AttemptId{id}, kPatience);
    CHECK(rig.of(id).error == "stopped: killed by signal 15 (SIGTERM)");
  }
}

TEST_CASE("a daemon that still runs jobs inside itself after the lease's grace is killed") {
  bool given_up = false;
  auto pidfd_open = MiniDaemon::PidfdOpen::kAllowed;
  SUBCASE("of a lease that ran out") {}
  SUBCASE("of a lease that was given up") { given_up = true; }
  SUBCASE("where there is no pidfd_open(2)") { pidfd_open = MiniDaemon::PidfdOpen::kDenied; }
  const TemporaryFolder dir;
  const Redirected standard_error{STDERR_FILENO, dir / "errors"};
  const Instant deadline = boot_now() + 300ms;
  MiniDaemon daemon{[&](Rig& rig) {
                      rig.host->set_lease(0, boot_now() + 1h, 200ms);
                      REQUIRE(rig.board.admit(0));
                      rig.host->set_lease(0, deadline, 200ms);
                      // Before the warden has seen it, as like as not.
                      if (given_up) rig.host->clear_lease(0);
                    },
                    {},
                    pidfd_open};
  const int status = daemon.wait();
  CHECK(boot_now() >= deadline + 200ms);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(eventually([&] {
    return contents(dir / "errors").find("Z error lictor: the lease is lost") != std::string::npos;
  }));
}

TEST_CASE("a daemon whose own jobs ended within the grace lives") {
  MiniDaemon daemon{[&](Rig& rig) {
    const Duration grace = 1s;
    rig.host->set_lease(0, boot_now() + 1h, grace);
    REQUIRE(rig.board.admit(0));
    const Instant deadline = boot_now() + 50ms;
    rig.host->set_lease(0, deadline, grace);
    REQUIRE(eventually([&] { return boot_now() > deadline; }));
    rig.board.release(0);
    REQUIRE(eventually([&] { return boot_now() > deadline + grace; }));
    // The warden has done all work of that time when it has answered twice.
    CHECK(rig.run({"/bin/true"}, attempt(1)).ending == Ending::kDone);
    CHECK(rig.run({"/bin/true"}, attempt(2)).ending == Ending::kDone);
  }};
  CHECK_FALSE(gone(daemon.pid()));
}

TEST_CASE("the daemon's death ends its jobs, which may tidy up and print, and then the warden") {
  auto pidfd_open = MiniDaemon::PidfdOpen::kAllowed;
  SUBCASE("which is seen by its pidfd") {}
  SUBCASE("which is seen by the channel") { pidfd_open = MiniDaemon::PidfdOpen::kDenied; }
  const TemporaryFolder dir;
  MiniDaemon daemon{
      [&](Rig& rig) {
        rig.start(shell("trap 'head -c 300000 /dev/zero; echo term > $3; exit' TERM; " + kHeartbeat,
                        {dir / "pid", dir / "beats", dir / "term"}));
      },
      {},
      pidfd_open};
  const pid_t job = pid_in(dir / "pid");
  daemon.send(SIGKILL);
  CHECK(eventually([&] { return gone(job); }));
  CHECK(contents(dir / "term") == "term\n");
  CHECK(eventually([&] { return gone(daemon.warden()); }));
}

TEST_CASE("jobs whose daemon died before the warden had read of their start end too") {
  MiniDaemon daemon{[](Rig& rig) {
    REQUIRE(kill(rig.warden, SIGSTOP) == 0);
    const auto runner = rig.runner({"/bin/sleep", "100"});
    for (std::uint64_t id = 1; id <= 2; ++id) {
      rig.start(*runner, id);
    }
  }};
  daemon.send(SIGKILL);
  (void)daemon.wait();
  REQUIRE(kill(daemon.warden(), SIGCONT) == 0);
  CHECK(eventually([&] { return gone(daemon.warden()); }));
}

TEST_CASE("the state directory stays locked until the last job of a dead daemon is dead") {
  const TemporaryFolder dir;
  const int lock = open_lock(dir);
  REQUIRE(take_lock(lock));
  MiniDaemon daemon{
      [&](Rig& rig) {
        rig.start(leased(shell("trap '' TERM; " + kHeartbeat, {dir / "pid", dir / "beats"}),
                         kNoLease, 300ms));
      },
      {.lock_fd = lock}};
  close(lock);
  const pid_t job = pid_in(dir / "pid");
  daemon.send(SIGKILL);
  (void)daemon.wait();
  const int next = open_lock(dir);
  bool early = false;
  CHECK(eventually([&] {
    const bool alive = !gone(job);  // Before the lock is tried.
    const bool locked = take_lock(next);
    early = early || (alive && locked && !gone(job));
    return locked;
  }));
  CHECK_FALSE(early);
  CHECK(gone(job));
  close(next);
}

// --- Releasing the locks of a dead daemon

// Notes in a file which locks are to be released, and which of `jobs` still live then.
ReleaseLocks noting(const std::string& file, const std::vector<std::string>& jobs = {}) {
  return [=](const std::vector<HeldLock>& locks) {
    usleep(100'000);  // The warden must wait for it.
    std::ofstream out{file, std::ios::app};
    for (const HeldLock& lock : locks) {
      out << lock.slot << ' ' << lock.session << ' ' << lock.index << ' ' << lock.value
          << (lock.keeps_session ? ", the session stays\n" : "\n");
    }
    for (const std::string& job : jobs) {
      if (!gone(pid_in(job))) out << "alive: " << job << '\n';
    }
    return std::string{};
  };
}

TEST_CASE("a dead daemon's lock is released when its last job is dead, and not before") {
  auto pidfd_open = MiniDaemon::PidfdOpen::kAllowed;
  SUBCASE("whose death is seen by its pidfd") {}
  SUBCASE("where there is no pidfd_open(2)") { pidfd_open = MiniDaemon::PidfdOpen::kDenied; }
  const TemporaryFolder dir;
  const int lock = open_lock(dir);
  REQUIRE(take_lock(lock));
  MiniDaemon daemon{
      [&](Rig& rig) {
        rig.host->set_lease(2, boot_now() + 1h, 100ms);
        rig.host->keep_lock({0, "gone", 5, "x"});
        rig.host->keep_lock({2, "two", 0, "b"});
        rig.host->keep_lock({2, "two", 12, "b"});
        rig.host->keep_lock({0, "", 0, ""});
        // Deaf, and with a child that left its group and lacks the attempt's mark.
        rig.start(leased(shell("trap '' TERM; (setsid env -i PATH=$PATH sh -c 'echo $$ > $1; exec "
                               "sleep 1000' sh $1 &); echo $$ > $2; while :; do sleep 0.01; done",
                               {dir / "child", dir / "job"}),
                         2, 300ms));
        (void)pid_in(dir / "child");
        (void)pid_in(dir / "job");
      },
      {.lock_fd = lock, .release_locks = noting(dir / "given", {dir / "child", dir / "job"})},
      pidfd_open};
  close(lock);
  daemon.send(SIGKILL);
  (void)daemon.wait();
  const int next = open_lock(dir);
  CHECK(eventually([&] { return take_lock(next); }));
  close(next);
  // All of it was done by then.
  CHECK(contents(dir / "given") == "2 two 12 b\n");
}

TEST_CASE("a lease without jobs need not wait for another's, a session ends with its last lock") {
  std::uint32_t partitions = 1;
  std::string first = "1 one 11 a\n", last = "2 two 12 b\n";
  SUBCASE("locks of sessions of their own") {}
  SUBCASE("locks of one session") {
    partitions = 2;
    first = "1 one 11 a, the session stays\n";
    last = "2 one 12 b\n";
  }
  const TemporaryFolder dir;
  MiniDaemon daemon{
      [&](Rig& rig) {
        rig.host->set_lease(2, boot_now() + 1h, 100ms);
        rig.host->keep_lock({1, "one", 11, "a", partitions});
        rig.host->keep_lock({2, partitions == 1 ? "two" : "one", 12, "b", partitions});
        rig.start(leased(shell("trap '' TERM; echo $$ > $1; while [ ! -e $2 ]; do sleep 0.01; done",
                               {dir / "job", dir / "end"}),
                         2, kPatience));
        (void)pid_in(dir / "job");
      },
      {.release_locks = noting(dir / "given")}};
  daemon.send(SIGKILL);
  CHECK(eventually([&] { return contents(dir / "given") == first; }));
  CHECK_FALSE(gone(pid_in(dir / "job")));
  write_file(dir / "end", "");
  CHECK(eventually([&] { return contents(dir / "given") == first + last; }));
}

TEST_CASE("a daemon that ends in order has released its locks itself") {
  const TemporaryFolder dir;
  {
    Rig rig{{.release_locks = noting(dir / "given")}};
    rig.host->keep_lock({1, "one", 11, "a"});
    CHECK(rig.run({"/bin/true"}).ending == Ending::kDone);
  }
  CHECK(contents(dir / "given").empty());
}

// --- A daemon that hangs

TEST_CASE("a daemon that holds a lock and whose loop stands still is killed, with its jobs") {
  const TemporaryFolder dir;
  SUBCASE("and a line says so") {}
  SUBCASE("and a JSON object says so, where the log is JSON") { emits_json = true; }
  const Redirected standard_error{STDERR_FILENO, dir / "errors"};
  MiniDaemon daemon{[&](Rig& rig) {
                      rig.host->set_lease(0, boot_now() + 1h, 100ms);
                      rig.host->keep_lock({0, "one", 11, "a"});
                      rig.board.beat();
                      rig.start(leased(shell(kHeartbeat, {dir / "pid", dir / "beats"})));
                      (void)pid_in(dir / "pid");
                    },
                    {.hang_timeout = 1s, .release_locks = noting(dir / "given", {dir / "pid"})}};
  const int status = daemon.wait();
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(eventually([&] { return contents(dir / "given") == "0 one 11 a\n"; }));
  const std::string begin =
      std::exchange(emits_json, false)
          ? R"({"level":"error","message":"the daemon hangs: its loop has not)"
          : "Z error lictor: the daemon hangs: its loop has not";
  CHECK(eventually([&] { return contents(dir / "errors").find(begin) != std::string::npos; }));
}

TEST_CASE("a daemon that hangs lives on if no lock is held, or if it is not watched") {
  bool holds = true, beats = true;
  Duration hang_timeout = 100ms;
  SUBCASE("no lock is known") { holds = false; }
  SUBCASE("it has not begun, or rests") { beats = false; }
  SUBCASE("it is switched off") { hang_timeout = 0s; }
  const TemporaryFolder dir;
  MiniDaemon daemon{[&](Rig& rig) {
                      rig.host->keep_lock({0, "one", holds ? 11U : 0U, "a"});
                      rig.board.beat();
                      if (!beats) rig.board.rest();
                      const Instant end = boot_now() + 10 * 100ms;
                      REQUIRE(eventually([&] { return boot_now() > end; }));
                      CHECK(rig.run({"/bin/true"}, attempt(1)).ending == Ending::kDone);
                    },
                    {.hang_timeout = hang_timeout, .release_locks = noting(dir / "given")}};
  CHECK_FALSE(gone(daemon.pid()));
}

TEST_CASE("the warden ignores signals that go to all, and keeps no descriptor of its daemon") {
  REQUIRE(dup2(STDERR_FILENO, 900) == 900);
  Rig rig;
  const std::string copy = "/proc/" + std::to_string(rig.warden) + "/fd/900";
  CHECK(eventually([&] { return access(copy.c_str(), F_OK) != 0; }));
  close(900);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1}) {
    REQUIRE(kill(rig.warden, number) == 0);
  }
  CHECK(rig.run({"/bin/true"}).ending == Ending::kDone);
  CHECK(getsid(rig.warden) == rig.warden);
}

TEST_CASE("the warden's death ends its jobs with all they started, and is reported") {
  RigInFolder rig;
  const auto runner =
      rig.start(shell("sh -c 'echo $$ > $1; exec sleep 1000' sh $1 &\n"
                      "(setsid sh -c 'echo $$ > $1; exec sleep 1000' sh $2 &) &\n"
                      "echo $$ > $3; while :; do sleep 0.01; done",
                      {rig.dir / "child", rig.dir / "escapee", rig.dir / "job"}));
  const pid_t child = pid_in(rig.dir / "child");
  const pid_t escapee = pid_in(rig.dir / "escapee");
  const pid_t job = pid_in(rig.dir / "job");
  REQUIRE(kill(rig.warden, SIGKILL) == 0);
  const Exit exit = rig.of(1);
  CHECK(exit.ending == Ending::kLost);
  CHECK(exit.error == "the warden died");
  CHECK(gone(job));
  CHECK(gone(child));
  CHECK(gone(escapee));
  CHECK(eventually([&] { return rig.warden_died(); }));
  const Error refused = refusal_of(runner->start(attempt(2), Instant::max(), rig.exits.callback()));
  CHECK(refused.code == ErrorCode::kUnavailable);
  rig.host->set_lease(0, boot_now() + 1h, 0ms);
}

TEST_CASE("the warden's death ends its programs though the daemon hangs") {
  const TemporaryFolder dir;
  MiniDaemon daemon{[&](Rig& rig) {
    ProcessOptions options{.argv = {"/bin/sleep", "1000"}, .directory = "/"};
    if (geteuid() == 0) options.user = find_user("daemon").value();
    Attempt started = attempt(1);
    started.on_pid = [&](pid_t pid) { write_file(dir / "pid", std::to_string(pid) + "\n"); };
    rig.start(options, started);
    (void)pid_in(dir / "pid");
  }};
  daemon.send(SIGSTOP);
  REQUIRE(kill(daemon.warden(), SIGKILL) == 0);
  CHECK(eventually([&] { return gone(pid_in(dir / "pid")); }));
}

TEST_CASE("the warden's death also ends strays without their attempt's mark in the job's group") {
  RigInFolder rig{WardenOptions{.cgroups = false}};
  // Nothing else of the group is left: the job itself dies with the warden.
  rig.start(
      shell("env -i PATH=$PATH sh -c 'echo $$ > $1; exec sleep 1000' sh $1 &\n"
            "exec sleep 1000",
            {rig.dir / "nameless"}));
  const pid_t nameless = pid_in(rig.dir / "nameless");
  REQUIRE(kill(rig.warden, SIGKILL) == 0);
  CHECK(rig.of(1).error == "the warden died");
  CHECK(gone(nameless));
  (void)kill(nameless, SIGKILL);
}

}  // namespace lictor::exec::test
