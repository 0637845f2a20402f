#include "worker/worker_runner.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/clock.h"
#include "support.h"

namespace lictor::worker::test {
namespace {

std::vector<std::string> logs_below(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator{folder, none}) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("one process takes one task after the other, and gets each as a message") {
  WorkerRig rig;
  const auto runner =
      rig.runner(script("printf '%s\\n' \"$line\" >> $1; " + kPid, {rig.dir / "got"}));
  const Exit first = rig.run(*runner, 1);
  CHECK(first.ending == Ending::kDone);
  CHECK_FALSE(first.commit);
  REQUIRE(first.result);
  for (std::uint64_t id = 2; id < 50; ++id) CHECK(rig.run(*runner, id).result == first.result);
  CHECK(contains(contents(rig.dir / "got"),
                 R"({"run":{"protocol":1,"attempt":"1","id":"7","key":"oracleTask/7","type":"Any",)"
                 R"("queue":"oracle","number":1,"fencingToken":1001,"task":{"taskId": "7"}}})"));
}

TEST_CASE("a worker's environment names its descriptor, and has nothing of a task") {
  WorkerRig rig;
  WorkerOptions options = script("env; answer");
  options.program.environment = {{"ORACLE_SID", "db7"}};
  options.program.log_directory = rig.dir.path() + "/logs";
  const auto runner = rig.runner(options);
  CHECK(rig.run(*runner, 1).ending == Ending::kDone);
  const std::string printed = contents(options.program.log_directory + "/oracle/7.1.1001.log");
  CHECK(contains(printed, "LICTOR_WORKER_FD=3\n"));
  CHECK(contains(printed, "LICTOR_QUEUE=oracle\n"));
  CHECK(contains(printed, "ORACLE_SID=db7\n"));
  CHECK_FALSE(contains(printed, "LICTOR_TASK"));
}

TEST_CASE("a worker's reply has the attempt's outcome, and its result and writes") {
  WorkerRig rig;
  const auto runner = rig.runner(script(R"(
    case $a in
      1) say '{"done":{"attempt":"1","result":{"n":1},"commit":[{"key":"app/x","value":"1"}]}}' ;;
      2) say '{"failed":{"attempt":"2","error":"no space","retryIn":"10s"}}' ;;
      3) say '{"failed":{"attempt":"3","error":"no such order","permanent":true}}' ;;
      4) say '{"failed":{"attempt":"4"}}' ;;
    esac)"));
  const Exit done = rig.run(*runner, 1);
  CHECK(done.ending == Ending::kDone);
  CHECK(done.result == R"({"n":1})");
  CHECK(done.commit == R"([{"key":"app/x","value":"1"}])");
  const Exit failed = rig.run(*runner, 2);
  CHECK(failed.ending == Ending::kRetry);
  CHECK(failed.error == "no space");
  CHECK(failed.retry_after == 10s);
  CHECK(rig.run(*runner, 3).ending == Ending::kPermanent);
  CHECK(rig.run(*runner, 4).ending == Ending::kRetry);
}

TEST_CASE("a task of half a megabyte arrives whole, and a short one after it") {
  WorkerRig rig;
  const auto runner =
      rig.runner(script(R"(say '{"done":{"attempt":"'$a'","result":'${#line}'}}')"));
  const std::string record = R"({"taskId": ")" + std::string(500'000, 'x') + R"("})";
  REQUIRE(runner->start(attempt(1, record), Instant::max(), rig.rig.exits.callback()).has_value());
  CHECK(std::stoul(*rig.of(1).result) > 500'000);
  CHECK(std::stoul(*rig.run(*runner, 2).result) < 1'000);
}

TEST_CASE("output before the reply is the attempt's, the rest is the process's") {
  WorkerRig rig;
  WorkerOptions options = script(R"(
    echo "out $a"; echo "err $a" >&2
    if [ $a = 2 ]; then say '{"failed":{"attempt":"2","error":"bad","output":"and this"}}'
    else answer; fi
    while [ ! -e $1 ]; do sleep 0.01; done
    rm $1; echo "after $a"; touch $2)",
                                 {rig.dir / "go", rig.dir / "gone"});
  options.program.log_directory = rig.dir.path() + "/logs";
  const auto runner = rig.runner(options);
  for (std::uint64_t id : {1, 2}) {
    const Exit exit = rig.run(*runner, id);
    const std::string n = std::to_string(id);
    if (id == 2) CHECK(exit.output_tail == "out 2\nerr 2\nand this");
    write_file(rig.dir / "go", "");
    REQUIRE(eventually([&] { return std::filesystem::remove(rig.dir / "gone"); }));
    REQUIRE(eventually([&] {
      for (const auto& name : logs_below(rig.dir.path() + "/logs/oracle")) {
        if (contains(name, "Any.worker-") &&
            contains(contents(rig.dir.path() + "/logs/oracle/" + name), "after " + n)) {
          return true;
        }
      }
      return false;
    }));
    CHECK(contents(rig.dir.path() + "/logs/oracle/7.1." + std::to_string(1000 + id) + ".log") ==
          "out " + n + "\nerr " + n + "\n" + (id == 2 ? "and this" : ""));
  }
}

TEST_CASE("progress is shown while the attempt runs") {
  WorkerRig rig;
  const auto runner = rig.runner(script(R"(
    say '{"progress":{"attempt":"'$a'","done":40,"total":100,"text":"rendered"}}'
    while [ ! -e $1 ]; do sleep 0.01; done; answer)",
                                        {rig.dir / "go"}));
  rig.start(*runner, 1);
  CHECK(eventually(
      [&] { return runner->progress(AttemptId{1}) == R"({"fraction":0.4,"note":"rendered"})"; }));
  write_file(rig.dir / "go", "");
  CHECK(rig.of(1).ending == Ending::kDone);
  CHECK(runner->progress(AttemptId{1}).empty());
}

TEST_CASE("no more processes than configured; each may have several attempts at a time") {
  WorkerRig rig;
  WorkerOptions options =
      script("(while [ ! -e $1 ]; do sleep 0.01; done; " + kPid + ") &", {rig.dir / "go"});
  options.processes = 2;
  options.tasks_per_process = 3;
  const auto runner = rig.runner(options);
  for (std::uint64_t id = 1; id <= 8; ++id) rig.start(*runner, id);
  CHECK(eventually([&] { return runner->figures().busy == 2; }));
  write_file(rig.dir / "go", "");
  std::set<std::string> pids;
  for (std::uint64_t id = 1; id <= 8; ++id) pids.insert(rig.of(id).result.value_or(""));
  CHECK(pids.size() == 2);
  CHECK(eventually([&] { return runner->figures().idle == 2; }));
}

TEST_CASE("after max_tasks a process is replaced, and after idle_timeout it is ended") {
  WorkerRig rig;
  WorkerOptions options = script(kPid);
  options.max_tasks = 2;
  const auto runner = rig.runner(options);
  std::vector<std::string> pids;
  for (std::uint64_t id = 1; id <= 4; ++id) pids.push_back(rig.run(*runner, id).result.value());
  CHECK(pids[0] == pids[1]);
  CHECK(pids[1] != pids[2]);
  CHECK(pids[2] == pids[3]);

  options.max_tasks = 0;
  options.idle_timeout = 1ms;
  const auto restless = rig.runner(options);
  const auto pid = static_cast<pid_t>(std::stol(rig.run(*restless, 5).result.value()));
  CHECK(eventually([&] { return gone(pid); }));
  CHECK(
      eventually([&] { return restless->figures().ends.at(std::size_t(EndReason::kIdle)) >= 1; }));
}

TEST_CASE("a reload keeps the processes of a worker that is as it was, and replaces others") {
  WorkerRig rig;
  WorkerOptions options = script(kPid);
  auto runner = rig.runner(options);
  const std::string pid = rig.run(*runner, 1).result.value();
  auto same = rig.runner(options);
  runner.reset();
  CHECK(rig.run(*same, 2).result == pid);
  options.program.environment = {{"A", "b"}};
  auto other = rig.runner(options);
  CHECK(rig.run(*other, 3).result != pid);
  same.reset();
  CHECK(eventually([&] { return gone(static_cast<pid_t>(std::stol(pid))); }));
}

TEST_CASE("a worker that a reload removed is counted until its last process is gone") {
  WorkerRig rig;
  WorkerOptions options = script(kPid);
  auto runner = rig.runner(options);
  CHECK(rig.run(*runner, 1).ending == Ending::kDone);
  options.program.environment = {{"A", "b"}};
  auto changed = rig.runner(options);
  runner.reset();
  const auto replaced = [&] {
    const auto all = rig.room.all_figures();
    const auto found = all.find({"oracle", "Any"});
    return found == all.end() ? 0 : found->second.ends.at(std::size_t(EndReason::kReplaced));
  };
  CHECK(eventually([&] { return replaced() == 1; }));
  CHECK(rig.run(*changed, 2).ending == Ending::kDone);
  CHECK(replaced() == 1);
  changed.reset();
  CHECK(eventually([&] { return rig.room.all_figures().empty(); }));
}

TEST_CASE("an attempt is finished although its runner is gone, and then the process ends") {
  WorkerRig rig;
  auto runner =
      rig.runner(script("while [ ! -e $1 ]; do sleep 0.01; done; " + kPid, {rig.dir / "go"}));
  rig.start(*runner, 1);
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  runner.reset();
  write_file(rig.dir / "go", "");
  const Exit exit = rig.of(1);
  CHECK(exit.ending == Ending::kDone);
  CHECK(eventually([&] { return gone(static_cast<pid_t>(std::stol(*exit.result))); }));
}

TEST_CASE("a cancelled attempt that is answered leaves its process to the next") {
  WorkerRig rig;
  const auto runner = rig.runner(script("[ $a != 1 ] && " + kPid, {rig.dir / "cancel"},
                                        R"(printf '%s\n' "$line" > $1
       say '{"failed":{"attempt":"'$a'","error":"cancelled by '$$'"}}')"));
  rig.start(*runner, 1, boot_now() - 1s);
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  runner->stop(AttemptId{1}, 60s);
  const Exit exit = rig.of(1);
  CHECK(exit.ending == Ending::kStopped);
  CHECK(contents(rig.dir / "cancel") ==
        "{\"cancel\":{\"attempt\":\"1\",\"reason\":\"timed out\"}}\n");
  CHECK(exit.error == "cancelled by " + rig.run(*runner, 2).result.value());
}

TEST_CASE("a process that does not answer cancel is ended with all that it started") {
  WorkerRig rig;
  WorkerOptions options = script(
      "trap '' TERM; (trap '' TERM; echo $$ > /dev/null; sleep 1000) & echo $! > $1; "
      "[ $a = 2 ] || while :; do sleep 0.01; done",
      {rig.dir / "child"});
  const auto runner = rig.runner(options);
  rig.start(*runner, 1);
  const pid_t child = pid_in(rig.dir / "child");
  runner->stop(AttemptId{1}, 10ms);
  runner->stop(AttemptId{1}, 2 * exec::test::kPatience);  // The first stop counts.
  const Exit exit = rig.of(1);
  CHECK(exit.ending == Ending::kStopped);
  CHECK(contains(exit.error, "did not answer \"cancel\""));
  CHECK(gone(child));
  CHECK(runner->figures().ends.at(std::size_t(EndReason::kUnanswered)) == 1);
}

TEST_CASE("other attempts of a process that is ended are given back") {
  WorkerRig rig;
  WorkerOptions options = script(":");
  options.tasks_per_process = 2;
  const auto runner = rig.runner(options);
  rig.start(*runner, 1);
  rig.start(*runner, 2);
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  runner->stop(AttemptId{1}, 10ms);
  CHECK(rig.of(1).ending == Ending::kStopped);
  const Exit other = rig.of(2);
  CHECK(other.ending == Ending::kStopped);
  CHECK(contains(other.error, "another attempt"));
}

TEST_CASE("an attempt that waits for a process and is stopped was not started") {
  WorkerRig rig;
  const auto runner = rig.runner(bare_script("sleep 1000"));
  rig.start(*runner, 1);
  CHECK(contains(runner->progress(AttemptId{1}), "it waits for a process of the worker"));
  runner->stop(AttemptId{1}, 60s);
  CHECK(rig.of(1).ending == Ending::kNotStarted);
}

namespace {

exec::Attempt of_partition(std::uint64_t id, std::uint32_t partition) {
  exec::Attempt made = attempt(id);
  made.partition = partition;
  return made;
}

}  // namespace

TEST_CASE("a process ends with the lease of an attempt, and the attempt is given back") {
  WorkerRig rig;
  WorkerOptions options = script("echo $$ > $1", {rig.dir / "pid"});
  options.program.slot = 0;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 3s, 100ms);
  const Instant end = rig.rig.board.deadline(0);
  rig.start(*runner, 1);
  const pid_t pid = pid_in(rig.dir / "pid");
  const Exit exit = rig.of(1);
  CHECK(boot_now() >= end);
  CHECK(exit.ending == Ending::kStopped);
  CHECK(contains(exit.error, "the lease ran out"));
  CHECK(gone(pid));
  CHECK(runner->figures().ends.at(std::size_t(EndReason::kLease)) == 1);
}

TEST_CASE("a process lives while its lease is extended, and outlives one that it does not hold") {
  WorkerRig rig;
  WorkerOptions options = script(kPid);
  options.program.slot = 0;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  rig.rig.host->set_lease(1, boot_now() + 60s, 100ms);
  const std::string pid = rig.run(*runner, 1).result.value();
  for (int i = 0; i < 20; ++i) rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  CHECK(rig.run(*runner, 2).result == pid);
  // The term is over; the process has answered all attempts of it. In the next term it works again.
  rig.rig.host->clear_lease(0);
  rig.rig.host->set_lease(0, boot_now() + 60s, 100ms);
  CHECK(rig.run(*runner, 3).result == pid);
  // A lease that is over, and under which the process has nothing, does not end it.
  REQUIRE(runner->start(of_partition(4, 1), Instant::max(), rig.rig.exits.callback()).has_value());
  CHECK(rig.of(4).result == pid);
  rig.rig.host->set_lease(1, boot_now() + 1s, 1ms);
  rig.rig.host->clear_lease(1);
  CHECK(eventually([&] { return boot_now() > rig.rig.board.deadline(1) + 10ms; }));
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
  WorkerOptions options =
      script("while [ ! -e $1 ]; do sleep 0.01; done; answer", {rig.dir / "go"});
  options.program.slot = 0;
  options.program.ends_with_lease = false;
  const auto runner = rig.runner(options);
  rig.rig.host->set_lease(0, boot_now() + 10ms, 10ms);
  rig.start(*runner, 1);
  CHECK(eventually([&] { return !rig.rig.board.holds(0, boot_now() - 100ms); }));
  write_file(rig.dir / "go", "");
  CHECK(rig.of(1).ending == Ending::kDone);
}

TEST_CASE("when the daemon hangs or dies, its warden ends the workers in time") {
  for (const int signal_number : {SIGSTOP, SIGKILL}) {
    CAPTURE(signal_number);
    const TemporaryFolder dir;
    std::unique_ptr<WorkerRunner> runner;
    std::unique_ptr<Room> room;
    const auto release = [&](const auto&) {
      write_file(dir / "released", gone(pid_in(dir / "pid")) ? "in time" : "early");
      return std::string{};
    };
    // The worker and its child ignore TERM and work on.
    const auto body = [&](exec::test::Rig& rig) {
      room = std::make_unique<Room>(*rig.host, 4, 4);
      WorkerOptions options = script(
          "trap 'echo > $3' TERM; (trap '' TERM; sleep 1000) & echo $! > $1.tmp; mv $1.tmp $1; "
          "echo $$ > $2; while :; do sleep 0.01; done",
          {dir / "child", dir / "pid", dir / "term"});
      options.program.slot = 0;
      options.program.grace = 1s;
      rig.host->keep_lock({0, "session", 11, "value"});
      runner = std::move(WorkerRunner::create(*room, options).value());
      rig.host->set_lease(0, boot_now() + 2s, 200ms);
      CHECK(runner->start(attempt(1), Instant::max(), rig.exits.callback()).has_value());
      (void)pid_in(dir / "pid");
    };
    const exec::test::MiniDaemon daemon{body, {.release_locks = release}};
    const pid_t pid = pid_in(dir / "pid");
    const pid_t child = pid_in(dir / "child");
    daemon.send(signal_number);
    CHECK(eventually([&] { return gone(pid) && gone(child); }));
    if (signal_number == SIGSTOP) continue;
    CHECK(eventually([&] { return contents(dir / "released") == "in time"; }));
    CHECK(contents(dir / "term") == "\n");
  }
}

}  // namespace lictor::worker::test
