#include <signal.h>

#include <string>

#include "base/clock.h"
#include "contains.h"
#include "support.h"

namespace lictor::worker::test {

using unit::contains;

namespace {

exec::Attempt of_partition(std::uint64_t id, std::uint32_t partition) {
  exec::Attempt made = attempt(id);
  made.partition = partition;
  return made;
}

}  // namespace

TEST_CASE("a process ends with the lease of an attempt, and the attempt is given back") {
  WorkerRig rig;
  const exec::test::TemporaryFolder dir;
  WorkerOptions options = script("echo $$ > $1", {dir / "pid"});
  options.program.slot = 0;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 1s, 100ms);
  const Instant end = rig.rig.board.deadline(0);
  rig.start(*runner, 1);
  const pid_t pid = pid_in(dir / "pid");
  const Exit exit = rig.of(1);
  CHECK(boot_now() >= end);
  CHECK(exit.ending == Ending::kStopped);
  CHECK(contains(exit.error, "the lease ran out"));
  CHECK(gone(pid));
  CHECK(runner->figures().ends.at(std::size_t(EndReason::kLease)) == 1);
}

TEST_CASE(
    "a process lives as long as the lease is extended, and outlives one that it does not hold") {
  WorkerRig rig;
  WorkerOptions options = script(kPid);
  options.program.slot = 0;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  rig.rig.host->set_lease(1, boot_now() + 60s, 100ms);
  const std::string pid = rig.run(*runner, 1).result.value();
  for (int i = 0; i < 20; ++i) rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  CHECK(rig.run(*runner, 2).result == pid);

  // The term is over; the process has answered all of it. In the next term it works again.
  rig.rig.host->clear_lease(0);
  rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  CHECK(rig.run(*runner, 3).result == pid);

  // A lease that is over, and of which it has nothing, does not end it.
  REQUIRE(runner->start(of_partition(4, 1), Instant::max(), rig.rig.exits.callback()).has_value());
  CHECK(rig.of(4).result == pid);
  rig.rig.host->clear_lease(1);
  rig.rig.host->set_worker_lease(1, boot_now() + 1ms, 1ms);
  CHECK(eventually([&] { return !rig.rig.board.holds(1, boot_now()); }));
  CHECK(rig.run(*runner, 5).result == pid);

  // Without a lease nothing starts.
  rig.rig.host->clear_lease(0);
  CHECK(rig.run(*runner, 6).ending == Ending::kNotStarted);
}

TEST_CASE("of several leases the one that ends first ends the process") {
  WorkerRig rig;
  WorkerOptions options = script(":");
  options.program.slot = 0;
  options.tasks_per_process = 2;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  rig.rig.host->set_lease(1, boot_now() + 500ms, 100ms);
  REQUIRE(runner->start(of_partition(1, 0), Instant::max(), rig.rig.exits.callback()).has_value());
  REQUIRE(runner->start(of_partition(2, 1), Instant::max(), rig.rig.exits.callback()).has_value());
  CHECK(rig.of(1).ending == Ending::kStopped);
  CHECK(rig.of(2).ending == Ending::kStopped);
}

TEST_CASE("with on_lease_lost finish an attempt outlives the lease") {
  WorkerRig rig;
  const exec::test::TemporaryFolder dir;
  WorkerOptions options = script("while [ ! -e $1 ]; do sleep 0.01; done; answer", {dir / "go"});
  options.program.slot = 0;
  options.program.ends_with_lease = false;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 10ms, 10ms);
  rig.start(*runner, 1);
  CHECK(eventually([&] { return !rig.rig.board.holds(0, boot_now() - 100ms); }));
  exec::test::write_file(dir / "go", "");
  CHECK(rig.of(1).ending == Ending::kDone);
}

TEST_CASE("when the daemon hangs or dies, its warden ends the workers in time") {
  for (const int signal_number : {SIGSTOP, SIGKILL}) {
    CAPTURE(signal_number);
    const exec::test::TemporaryFolder dir;
    std::unique_ptr<WorkerRunner> runner;
    std::unique_ptr<Room> room;
    // The worker and its child ignore TERM and work on.
    const exec::test::MiniDaemon daemon{[&](exec::test::Rig& rig) {
      room = std::make_unique<Room>(*rig.host, 4, 4);
      WorkerOptions options = script(
          "trap '' TERM; (trap '' TERM; sleep 1000) & echo $! > $1.tmp; mv $1.tmp $1; "
          "echo $$ > $2; while :; do sleep 0.01; done",
          {dir / "child", dir / "pid"});
      options.program.slot = 0;
      runner = std::move(WorkerRunner::create(*room, options).value());
      rig.host->set_lease(0, boot_now() + 2s, 200ms);
      CHECK(runner->start(attempt(1), Instant::max(), rig.exits.callback()).has_value());
      (void)pid_in(dir / "pid");
    }};
    const pid_t pid = pid_in(dir / "pid");
    const pid_t child = pid_in(dir / "child");
    daemon.send(signal_number);
    CHECK(eventually([&] { return gone(pid) && gone(child); }));
  }
}

}  // namespace lictor::worker::test
