#include "exec/process_runner.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "skip.h"
#include "support.h"

namespace lictor::exec::test {

TEST_CASE("a program reads the task's record on standard input, to its end") {
  Rig rig;
  const Exit small = rig.run({"/bin/cat"}, attempt(1, R"({"taskId": "42"})"));
  CHECK(small.ending == Ending::kDone);
  CHECK(small.error.empty());
  CHECK(small.output_tail == R"({"taskId": "42"})");
  const TemporaryFolder dir;
  const std::string record = R"({"taskId": ")" + std::string(500'000, 'x') + R"("})";
  write_file(dir / "record", record);
  CHECK(rig.run({"/usr/bin/cmp", "-", dir / "record"}, attempt(2, record)).ending == Ending::kDone);
  CHECK(rig.run(shell("echo x >&0"), attempt(3)).ending == Ending::kRetry);  // It is sealed.
}

TEST_CASE("a program's environment names the task, and none of the daemon's secrets") {
  setenv("CONSUL_HTTP_TOKEN", "secret", 1);
  setenv("LICTOR_CONFIG", "/etc/lictor/lictor.json", 1);
  Rig rig;
  ProcessOptions options{.argv = {"/usr/bin/env"}, .environment = {{"ORACLE_SID", "db7"}}};
  const std::string printed =
      rig.run(options, attempt(1, R"({"taskPara": {"initSize": 8000}})")).output_tail;
  unsetenv("CONSUL_HTTP_TOKEN");
  unsetenv("LICTOR_CONFIG");
  CHECK(contains(printed, "LICTOR_PARA_initSize=8000\n"));
  CHECK(contains(printed, "LICTOR_FENCING_TOKEN=1001\n"));
  CHECK(contains(printed, "LICTOR_DEADLINE=\n"));
  CHECK(contains(printed, "ORACLE_SID=db7\n"));
  CHECK_FALSE(contains(printed, "secret"));
  CHECK_FALSE(contains(printed, "LICTOR_CONFIG"));
}

TEST_CASE("a parameter of 100 kB arrives in the environment, one of 200 kB is left out") {
  Rig rig;
  const auto record = [](std::size_t size) {
    return R"({"taskPara": {"big": ")" + std::string(size, 'x') + R"("}})";
  };
  CHECK(rig.run(shell("echo ${#LICTOR_PARA_big}"), attempt(1, record(100'000))).output_tail ==
        "100000\n");
  CHECK(rig.run(shell("echo ${#LICTOR_PARA_big}"), attempt(2, record(200'000))).output_tail ==
        "0\n");
}

TEST_CASE("the pid of a program is reported before its end") {
  Rig rig;
  std::atomic<pid_t> pid = 0;
  Attempt started = attempt(1);
  started.on_pid = [&](pid_t reported) { pid = reported; };
  const std::string printed = rig.run(shell("echo $$"), started).output_tail;
  CHECK(printed == std::to_string(pid.load()) + "\n");
}

TEST_CASE("no shell looks at the arguments; without a program there is no runner") {
  Rig rig;
  CHECK(rig.run({"/bin/echo", "$HOME;`id`", "*", "a  b"}).output_tail == "$HOME;`id` * a  b\n");
  CHECK(ProcessRunner::create(*rig.host, {}).error().code == ErrorCode::kInvalid);
}

TEST_CASE("the exit status decides: 0 done, 64, 65 and 78 permanent, the rest again") {
  Rig rig;
  std::uint64_t id = 0;
  const auto ending = [&](const std::string& status) {
    return rig.run(shell("exit " + status), attempt(++id)).ending;
  };
  CHECK(ending("0") == Ending::kDone);
  CHECK(ending("75") == Ending::kRetry);
  for (const char* status : {"64", "65", "78"}) CHECK(ending(status) == Ending::kPermanent);
  for (const char* status : {"1", "66", "77", "127", "255"})
    CHECK(ending(status) == Ending::kRetry);
  CHECK(rig.run(shell("exit 3"), attempt(++id)).error == "exit status 3");
}

TEST_CASE("a program that cannot be run ends its attempt with the reason") {
  RigInFolder rig;
  const Exit missing = rig.run({"/opt/none/x"}, attempt(1));
  CHECK(missing.ending == Ending::kNotStarted);
  CHECK(missing.error == "cannot run /opt/none/x: No such file or directory");
  write_file(rig.dir / "script", "echo no first line\n");
  CHECK(rig.run({rig.dir / "script"}, attempt(3)).error ==
        "cannot run " + (rig.dir / "script") +
            ": Permission denied (to the daemon's user; make the "
            "program executable with chmod +x, and its folders passable)");
  chmod((rig.dir / "script").c_str(), 0755);
  CHECK(rig.run({rig.dir / "script"}, attempt(4)).error ==
        "cannot run " + (rig.dir / "script") +
            ": Exec format error (a script needs a first line like #!/bin/sh)");
  write_file(rig.dir / "windows", "#!/bin/sh\r\necho\n");
  chmod((rig.dir / "windows").c_str(), 0755);
  const std::string interpreter = rig.run({rig.dir / "windows"}, attempt(6)).error;
  CHECK(interpreter == "cannot run " + (rig.dir / "windows") +
                           ": No such file or directory (the file is there; the interpreter in its "
                           "first line, or its loader, is not)");
  ProcessOptions options{.argv = {"/bin/true"}, .directory = rig.dir / "none"};
  CHECK(rig.run(options, attempt(5)).error == "cannot run /bin/true: working directory " +
                                                  (rig.dir / "none") +
                                                  ": No such file or directory");
}

TEST_CASE("a program has a session and a group of its own, default signals and three files") {
  Rig rig;
  const Exit exit = rig.run(shell("echo $$ $$ $$; cut -d' ' -f1,5,6 /proc/$$/stat"), attempt(1));
  const std::size_t line = exit.output_tail.find('\n') + 1;
  CHECK(exit.output_tail.substr(0, line) == exit.output_tail.substr(line));
  const std::string status = rig.run({"/bin/cat", "/proc/self/status"}, attempt(2)).output_tail;
  for (const char* set : {"SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"}) {
    CAPTURE(set);
    CHECK(contains(status, std::string{set} + ":\t0000000000000000\n"));
  }
  // 3 is the directory that ls reads.
  CHECK(rig.run({"/bin/ls", "/proc/self/fd"}, attempt(3)).output_tail == "0\n1\n2\n3\n");
}

TEST_CASE("working directory, limits and user are those of the configuration") {
  RigInFolder rig;
  ProcessOptions options{
      .argv = shell("pwd; ulimit -n; id -u; id -g; echo $HOME; echo x > /dev/stdout"),
      .directory = rig.dir.path(),
      .limits = {{RLIMIT_NOFILE, 77, 77}}};
  std::string identity;
  if (geteuid() == 0) {
    const auto user = find_user("daemon").value();
    options.user = user;
    identity = std::to_string(user.credentials.uid) + "\n" + std::to_string(user.credentials.gid) +
               "\n" + user.home + "\n";
    chmod(rig.dir.path().c_str(), 0755);
  } else {
    identity = std::to_string(geteuid()) + "\n" + std::to_string(getegid()) + "\n" +
               std::getenv("HOME") + "\n";
  }
  CHECK(rig.run(options, attempt(1)).output_tail == rig.dir.path() + "\n77\n" + identity + "x\n");
  if (!is_root()) return;
  chmod(rig.dir.path().c_str(), 0700);
  CHECK(rig.run(options, attempt(2)).error ==
        "cannot run /bin/sh: working directory " + rig.dir.path() + ": Permission denied");
}

// node reserves far more address space than it uses.
TEST_CASE("limits.memory bounds what a job may write to, and not what it reserves") {
  Rig rig;
  ProcessOptions options;
  constexpr rlim_t kGiB = 1U << 30U;
  options.limits = {{RLIMIT_DATA, kGiB, kGiB}};
  options.argv = {"/usr/bin/env", "node", "-e", "console.log('up')"};
  CHECK(rig.run(options, attempt(1)).output_tail == "up\n");
  options.argv = {"/usr/bin/env", "node", "-e", "Buffer.alloc(2 ** 31)"};
  CHECK(rig.run(options, attempt(2)).ending != Ending::kDone);
}

TEST_CASE("stop: TERM, and KILL after the grace for a job that ignores it") {
  RigInFolder rig;
  const auto deaf = rig.start(
      shell("trap '' TERM; echo up > $1; while :; do sleep 0.02; done", {rig.dir / "deaf"}));
  REQUIRE(eventually([&] { return !contents(rig.dir / "deaf").empty(); }));
  const Instant stopped = boot_now();
  deaf->stop(AttemptId{1}, 50ms);
  deaf->stop(AttemptId{1}, 2 * kPatience);  // The earlier KILL counts.
  const Exit killed = rig.of(1);
  CHECK(boot_now() - stopped >= 50ms);
  CHECK(killed.ending == Ending::kStopped);
  CHECK(killed.error == "stopped: killed by signal 9 (SIGKILL)");

  const auto polite = rig.start(
      shell("trap 'exit 0' TERM; echo up > $1; while :; do sleep 0.02; done", {rig.dir / "polite"}),
      attempt(2));
  REQUIRE(eventually([&] { return !contents(rig.dir / "polite").empty(); }));
  polite->stop(AttemptId{2}, kPatience);
  CHECK(rig.of(2).ending == Ending::kDone);
  polite->stop(AttemptId{2}, 0ms);  // Ended: ignored.
  polite->stop(AttemptId{99}, 0ms);
}

TEST_CASE("stop reaches a job that was stopped by SIGSTOP") {
  RigInFolder rig;
  const auto runner = rig.start(shell("echo $$ > $1; kill -STOP $$; exit 3", {rig.dir / "pid"}));
  const std::string stat = "/proc/" + std::to_string(pid_in(rig.dir / "pid")) + "/stat";
  REQUIRE(eventually([&] { return contents(stat).find(") T ") != std::string::npos; }));
  runner->stop(AttemptId{1}, kPatience);
  CHECK(rig.of(1).error == "stopped: killed by signal 15 (SIGTERM)");
}

TEST_CASE("a warden that was stopped by a signal goes on when it is needed") {
  Rig rig;
  const auto runner = rig.start({"/bin/sleep", "1000"});
  const std::string stat = "/proc/" + std::to_string(rig.warden) + "/stat";
  const auto freeze = [&] {
    REQUIRE(kill(rig.warden, SIGSTOP) == 0);
    REQUIRE(eventually([&] { return contents(stat).find(") T ") != std::string::npos; }));
  };
  freeze();
  runner->stop(AttemptId{1}, kPatience);
  CHECK(rig.of(1).error == "stopped: killed by signal 15 (SIGTERM)");

  ProcessOptions options{.argv = {"/bin/sleep", "1000"}, .slot = 1};
  const Instant deadline = boot_now() + 2s;
  rig.host->set_lease(1, deadline, 0ms);
  const auto leased = rig.start(options, attempt(2));
  freeze();
  REQUIRE(eventually([&] { return boot_now() > deadline; }));
  rig.host->clear_lease(1);
  CHECK(rig.of(2).ending != Ending::kDone);

  freeze();
  rig.start(*runner, 3);
  CHECK(eventually([&] { return contents(stat).find(") T ") == std::string::npos; }));
  freeze();
  rig.close();
}

TEST_CASE("a stop right after the start is not lost, whatever the child is doing") {
  Rig rig;
  const auto runner = rig.runner({"/bin/sleep", "1000"});
  for (std::uint64_t id = 1; id <= 100; ++id) {
    rig.start(*runner, id);
    runner->stop(AttemptId{id}, 2 * kPatience);
    CHECK(rig.of(id).error == "stopped: killed by signal 15 (SIGTERM)");
  }
}

TEST_CASE("processes that a job leaves in the background are gone when its end is reported") {
  RigInFolder rig;
  const auto leave = [&](std::uint64_t id, const std::string& how) {
    const std::string file = rig.dir / std::to_string(id);
    CAPTURE(how);
    // The job holds the output open, too.
    CHECK(rig.run(shell(how + "\nwhile ! test -s $1; do sleep 0.01; done", {file}), attempt(id))
              .ending == Ending::kDone);
    CHECK(gone(pid_in(file)));
  };
  const std::string sleeper = "sh -c 'echo $$ > $1; exec sleep 1000' sh $1";
  leave(1, sleeper + " &");
  leave(2, "set -m; " + sleeper + " &");     // its own process group
  leave(3, "setsid " + sleeper + " &");      // its own session
  leave(4, "(setsid " + sleeper + " &) &");  // and its parent gone: a daemon
  leave(5, "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > $1; sleep 1000; :' sh $1 &) &");
}

TEST_CASE("a daemon of one job is gone with its job, while another job runs on") {
  bool cgroups = true;
  SUBCASE("in its cgroup") {}
  SUBCASE("without cgroups") { cgroups = false; }
  RigInFolder rig{WardenOptions{.cgroups = cgroups}};
  const auto other = rig.start({"/bin/sleep", "1000"}, attempt(9));
  CHECK(rig.run(shell("(setsid sh -c 'echo $$ > $1; exec sleep 1000' sh $1 &) &\n"
                      "while ! test -s $1; do sleep 0.01; done",
                      {rig.dir / "pid"}))
            .ending == Ending::kDone);
  CHECK(gone(pid_in(rig.dir / "pid")));
  CHECK_FALSE(rig.has(9));
  other->stop(AttemptId{9}, kPatience);
  CHECK(rig.of(9).ending == Ending::kStopped);
}

TEST_CASE("a job may close its output and go on; its end is its exit") {
  RigInFolder rig;
  const auto runner =
      rig.start(shell("echo last words; exec >&- 2>&-; echo $$ > $1\n"
                      "while ! test -e $2; do sleep 0.01; done; exit 7",
                      {rig.dir / "pid", rig.dir / "go"}));
  const pid_t pid = pid_in(rig.dir / "pid");
  CHECK_FALSE(gone(pid));
  CHECK_FALSE(rig.has(1));
  write_file(rig.dir / "go", "");
  const Exit exit = rig.of(1);
  CHECK(exit.error == "exit status 7: last words");
  CHECK(exit.output_tail == "last words\n");
}

TEST_CASE("output goes to a log of the attempt, up to the cap, and its tail into the exit") {
  RigInFolder rig;
  ProcessOptions options{.argv = shell("echo out; echo err >&2"),
                         .log_directory = rig.dir / "logs"};
  Attempt one = attempt(1);
  one.key_id = "a/../b c";  // and not the taskId, which several tasks may have
  CHECK(rig.run(options, one).output_tail == "out\nerr\n");
  const std::string log = rig.dir / "logs/oracle/a%2F..%2Fb%20c.1.1001.log";
  CHECK(contents(log) == "out\nerr\n");
  struct stat info {};
  REQUIRE(stat(log.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == (0640 & ~umask(umask(0))));
  options.argv = shell("printf 0123456789abcdef; exec sh -c 'printf end'");
  options.log_cap = 10;
  CHECK(rig.run(options, attempt(2)).output_tail == "0123456789abcdefend");
  CHECK(contents(rig.dir / "logs/oracle/7.1.1002.log") ==
        "01234\n[lictor: 9 bytes were left out here]\nefend");
}

TEST_CASE("100 MB of output are read and dropped, and the job is not held up") {
  RigInFolder rig;
  ProcessOptions options{.argv = shell("head -c 100000000 /dev/zero; echo done"),
                         .log_directory = rig.dir.path()};
  const Exit exit = rig.run(options, attempt(1));
  CHECK(exit.ending == Ending::kDone);
  CHECK(exit.output_tail.ends_with("done\n"));
  CHECK(exit.output_tail.size() <= OutputLog::kTailBytes);
  const std::string log = contents(rig.dir / "oracle/7.1.1001.log");
  CHECK(contains(log, "\n[lictor: 98951429 bytes were left out here]\n"));
  CHECK(log.ends_with("done\n"));
  CHECK(log.size() < options.log_cap + 100);
}

TEST_CASE("a log that cannot be written is a warning, never a failure of the job") {
  RigInFolder rig;
  write_file(rig.dir / "file", "");
  ProcessOptions options{.argv = {"/bin/echo", "hello"},
                         .log_directory = rig.dir / "file",
                         .active_logs = std::make_shared<ActiveLogs>()};
  const Exit exit = rig.run(options, attempt(1));
  CHECK(exit.ending == Ending::kDone);
  CHECK(exit.output_tail == "hello\n");
  REQUIRE(rig.warnings().size() == 1);
  CHECK(rig.warnings().front() == "cannot open " + (rig.dir / "file") +
                                      "/oracle/7.1.1001.log: Not a directory; the job goes on, "
                                      "but its output is lost");
  CHECK(options.active_logs->newest_error() ==
        "cannot open " + (rig.dir / "file") + "/oracle/7.1.1001.log: Not a directory");
  // A job that prints nothing proves nothing; a job whose output is kept ends the trouble.
  options.argv = {"/bin/true"};
  CHECK(rig.run(options, attempt(2)).ending == Ending::kDone);
  CHECK_FALSE(options.active_logs->newest_error().empty());
  options.argv = {"/bin/echo", "hello"};
  options.log_directory = rig.dir / "logs";
  CHECK(rig.run(options, attempt(3)).ending == Ending::kDone);
  CHECK(options.active_logs->newest_error().empty());
}

TEST_CASE("a log's place taken by a link is not written through") {
  RigInFolder rig;
  write_file(rig.dir / "precious", "as it was");
  std::filesystem::create_directories(rig.dir / "logs/oracle");
  std::filesystem::create_symlink(rig.dir / "precious", rig.dir / "logs/oracle/7.1.1001.log");
  ProcessOptions options{.argv = {"/bin/echo", "hello"}, .log_directory = rig.dir / "logs"};
  CHECK(rig.run(options, attempt(1)).ending == Ending::kDone);
  CHECK(contents(rig.dir / "precious") == "as it was");
  CHECK(rig.warnings().size() == 1);
}

TEST_CASE("a job hands over writes and a result in the files that its variables name") {
  RigInFolder rig;
  ProcessOptions options{.scratch_directory = rig.dir / "scratch"};
  options.directory = "/";  // where we are that user may not be allowed
  if (geteuid() == 0) {
    options.user = find_user("daemon").value();
    chmod(rig.dir.path().c_str(), 0777);
  }
  options.argv = shell("echo '[1]' > $LICTOR_COMMIT.new; mv $LICTOR_COMMIT.new $LICTOR_COMMIT");
  const Exit one = rig.run(options, attempt(1));
  CHECK(one.commit == "[1]\n");
  CHECK_FALSE(one.result.has_value());
  options.argv = shell("echo 2 > $LICTOR_RESULT");
  CHECK(rig.run(options, attempt(2)).result == "2\n");
  options.argv = shell("echo 2 > $LICTOR_RESULT; exit 75");
  CHECK_FALSE(rig.run(options, attempt(3)).result.has_value());
  options.argv = shell("head -c 600000 /dev/zero > $LICTOR_RESULT");
  const Exit large = rig.run(options, attempt(4));
  CHECK(large.ending == Ending::kDone);
  CHECK_FALSE(large.result.has_value());
  CHECK(large.result_fault ==
        "cannot take over the file LICTOR_RESULT: expected at most 524288 bytes, got more");

  options.argv = shell("ln -s /etc/passwd $LICTOR_RESULT");
  CHECK(contains(rig.run(options, attempt(5)).result_fault, "symbolic link"));
  options.argv = shell("mkfifo $LICTOR_RESULT");
  CHECK(contains(rig.run(options, attempt(6)).result_fault, "a FIFO"));
  options.argv = shell("ln -s /etc/passwd $LICTOR_COMMIT");
  CHECK(rig.run(options, attempt(7)).ending == Ending::kRetry);
  write_file(rig.dir / "other", "8");
  chmod((rig.dir / "other").c_str(), 0666);
  options.argv = shell("ln $1 $LICTOR_RESULT", {rig.dir / "other"});
  if (options.user) CHECK(contains(rig.run(options, attempt(8)).result_fault, "regular file"));
  (void)!chown((rig.dir / "other").c_str(), 65534, 65534);  // a third user's
  options.argv = shell("mv $1 $LICTOR_RESULT", {rig.dir / "other"});
  if (options.user) CHECK(contains(rig.run(options, attempt(9)).result_fault, "regular file"));
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{rig.dir / "scratch"}) {
    left += entry.is_directory() ? 0 : 1;
  }
  CHECK(left == 0);
}

TEST_CASE("a hand-over that is lost because its directory is gone is not passed over") {
  RigInFolder rig;
  ProcessOptions options{
      .argv = shell("[ -e $1 ] || rm -r $2; touch $1; echo '[1]' > $LICTOR_COMMIT; true",
                    {rig.dir / "begun", rig.dir / "scratch"}),
      .scratch_directory = rig.dir / "scratch"};
  const auto runner = rig.start(options);
  const Exit lost = rig.of(1);
  CHECK(lost.ending == Ending::kRetry);
  CHECK(lost.error.find("the directory of LICTOR_COMMIT is gone") == 0);
  // The next attempt finds a directory.
  rig.start(*runner, 2);
  CHECK(rig.of(2).commit == "[1]\n");
}

TEST_CASE("a warden that is held up loses neither orders nor ends") {
  Rig rig;
  const auto runner = rig.runner({"/bin/true"});
  kill(rig.warden, SIGSTOP);
  for (std::uint64_t id = 1; id <= 400; ++id) {
    rig.start(*runner, id);
  }
  kill(rig.warden, SIGCONT);
  rig.exits.wait_for(400);
  CHECK(eventually([&] { return rig.host->responds(boot_now() + 1h); }));  // it waits
}

TEST_CASE("the host's end ends jobs that still run, and reports it") {
  Rig rig;
  const auto runner = rig.runner({"/bin/sleep", "1000"});
  for (std::uint64_t id = 1; id <= 3; ++id) {
    rig.start(*runner, id);
  }
  rig.close();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const Exit exit = rig.of(id);
    CHECK(exit.ending == Ending::kStopped);
    CHECK(exit.error == "stopped since the daemon went down: killed by signal 15 (SIGTERM)");
  }
  CHECK(gone(rig.warden));
  CHECK_FALSE(rig.warden_died());
}

}  // namespace lictor::exec::test
