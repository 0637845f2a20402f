// Workers that break the protocol, die, or do something else that they should not.

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "support.h"

namespace lictor::worker::test {

namespace {

struct Row {
  std::string does, error;
};

void start_task(WorkerRig& rig, WorkerRunner& runner, std::uint64_t id, const std::string& task) {
  exec::Attempt made = attempt(id);
  made.task_id = task;
  made.task_key = "oracleTask/" + task;
  made.key_id = task;
  REQUIRE(runner.start(std::move(made), Instant::max(), rig.rig.exits.callback()).has_value());
}

std::uint64_t ends(const WorkerRunner& runner, EndReason reason) {
  return runner.figures().ends.at(static_cast<std::size_t>(reason));
}

}  // namespace

TEST_CASE("a worker that is not ready is not started, and the attempt says why") {
  WorkerRig rig;
  std::uint64_t id = 0;
  for (const Row& row : std::vector<Row>{
           {"echo no database >&2; exit 3",
            R"(the worker ended before it said "ready": exit status 3: no database)"},
           {"echo bye; exit 0",
            R"(the worker ended before it said "ready": exit status 0; its last line: bye)"},
           {"kill -9 $$",
            R"(the worker ended before it said "ready": killed by signal 9 (SIGKILL))"},
           {"echo hello >&3; sleep 1000", "in the line hello"},
           {"echo '{\"ready\":{\"protocol\":2}}' >&3; sleep 1000", "speaks version 2"},
           {"echo '{\"done\":{\"attempt\":\"1\"}}' >&3; sleep 1000", R"(expected "ready" first)"},
           {"exec 3>&-; sleep 1000", "closed the descriptor of its replies"}}) {
    CAPTURE(row.does);
    const auto runner = rig.runner(bare_script(row.does));
    const Exit exit = rig.run(*runner, ++id);
    CHECK(exit.ending == Ending::kNotStarted);
    CHECK(contains(exit.error, row.error));
    CHECK(ends(*runner, EndReason::kNotReady) == 1);
  }
  WorkerOptions silent = bare_script("echo loading; sleep 1000");
  silent.start_timeout = 200ms;
  const Exit late = rig.run(*rig.runner(silent), ++id);
  CHECK(late.ending == Ending::kNotStarted);
  CHECK(late.error ==
        "the worker did not say \"ready\" within start_timeout (200ms); its last line: loading");
  WorkerOptions missing = bare_script("");
  missing.program.argv = {"/opt/none/worker"};
  const Exit none = rig.run(*rig.runner(missing), ++id);
  CHECK(none.ending == Ending::kNotStarted);
  CHECK(none.error == "cannot run /opt/none/worker: No such file or directory");
}

TEST_CASE("a worker that dies with an attempt fails it, and the next gets a fresh process") {
  WorkerRig rig;
  const auto runner = rig.runner(script(R"(
    case $a in
      1) echo 'out of cheese' >&2; exit 3 ;;
      2) kill -9 $$ ;;
      3) exit 65 ;;
      4) echo bye; exit 0 ;;
      5) answer; exit 1 ;;
      *) answer ;;
    esac)"));
  const Exit failed = rig.run(*runner, 1);
  CHECK(failed.ending == Ending::kRetry);
  CHECK(failed.error == "exit status 3: out of cheese (before it answered)");
  CHECK(failed.output_tail == "out of cheese\n");
  CHECK(rig.run(*runner, 2).error == "killed by signal 9 (SIGKILL) (before it answered)");
  CHECK(rig.run(*runner, 3).ending == Ending::kRetry);
  const Exit early = rig.run(*runner, 4);
  CHECK(early.ending == Ending::kRetry);
  CHECK(early.error == "exit status 0: bye (before it answered)");
  CHECK(rig.run(*runner, 5).ending == Ending::kDone);  // what it said before its end counts
  CHECK(rig.run(*runner, 6).ending == Ending::kDone);
}

TEST_CASE("a line that is no reply ends the process, and fails its attempts with the line") {
  WorkerRig rig;
  std::uint64_t id = 0;
  for (const Row& row : std::vector<Row>{
           {"say hello", "in the line hello"},
           {R"(say '{"done":{"attempt":"999"}}')", R"(attempt "999" is not under way)"},
           {R"(say '{"ready":{"protocol":1}}')", R"("ready" came twice)"},
           {R"(say '{"done":{"attempt":7}}')", R"("attempt": expected text, got 7)"},
           {R"(say '')", "the worker broke the protocol"},
           {R"(printf '{"done":"%01048600d' 0 >&3)", "at most 1048576 bytes"},
           {"exec 3>&-", "closed the descriptor of its replies and lives on"}}) {
    CAPTURE(row.does);
    const auto runner = rig.runner(script(row.does + "; while :; do sleep 1; done"));
    const Exit exit = rig.run(*runner, ++id);
    CHECK(exit.ending == Ending::kRetry);
    CHECK(contains(exit.error, row.error));
    CHECK(ends(*runner, EndReason::kProtocol) == 1);
  }
}

TEST_CASE("a reply for another attempt fails all attempts of the process") {
  WorkerRig rig;
  WorkerOptions options = script(R"([ $a = 2 ] && say '{"done":{"attempt":"3"}}')");
  options.tasks_per_process = 2;
  const auto runner = rig.runner(options);
  rig.start(*runner, 1);
  rig.start(*runner, 2);
  for (std::uint64_t id : {1, 2}) {
    CHECK(rig.of(id).ending == Ending::kRetry);
    CHECK(contains(rig.of(id).error, R"({"done":{"attempt":"3"}})"));
  }
}

TEST_CASE("a line that breaks the protocol fails all attempts of the process") {
  for (const Row& row : std::vector<Row>{
           {R"({"failed":{"attempt":"3","retryIn":30}})", R"("retryIn": expected text, got 30)"},
           {R"({"failed":{"error":"half a pair: \ud83d","attempt" : "3"}})", "half a pair"},
           {R"({"done":{"attempt":"3","result":1e999}})", "1e999"}}) {
    CAPTURE(row.does);
    WorkerRig rig;
    WorkerOptions options = script("[ $a = 3 ] && say '" + row.does + "'");
    options.tasks_per_process = 3;
    const auto runner = rig.runner(options);
    for (std::uint64_t id = 1; id <= 3; ++id) rig.start(*runner, id);
    for (std::uint64_t id : {1, 2, 3}) {
      CHECK(rig.of(id).ending == Ending::kRetry);
      CHECK(contains(rig.of(id).error, row.error));
    }
    CHECK(ends(*runner, EndReason::kProtocol) == 1);
  }
}

TEST_CASE("tasks that ended with their process are tried again one by one") {
  WorkerRig rig;
  // In the first round the process dies before any answer, in the next one later.
  WorkerOptions options = script(
      "case $line in *'\"id\":\"bad\"'*) exit 9 ;; esac; "
      "[ $a -le 3 ] || { sleep 0.3; say '{\"done\":{\"attempt\":\"'$a'\"}}'; } &");
  options.tasks_per_process = 3;
  const auto runner = rig.runner(options);
  const char* tasks[] = {"good", "better", "bad"};
  for (std::uint64_t id = 1; id <= 3; ++id) start_task(rig, *runner, id, tasks[id - 1]);
  for (std::uint64_t id = 1; id <= 3; ++id) CHECK(rig.of(id).ending == Ending::kRetry);
  for (std::uint64_t id = 4; id <= 6; ++id) start_task(rig, *runner, id, tasks[id - 4]);
  CHECK(rig.of(4).ending == Ending::kDone);
  CHECK(rig.of(5).ending == Ending::kDone);
  CHECK(rig.of(6).error == "exit status 9 (before it answered)");
  // An attempt that was answered may have company again.
  start_task(rig, *runner, 7, "good");
  start_task(rig, *runner, 8, "better");
  CHECK(eventually([&] { return rig.has(7) || rig.has(8); }));
  CHECK(rig.of(7).ending == Ending::kDone);
  CHECK(rig.of(8).ending == Ending::kDone);
}

TEST_CASE("an attempt that must be alone takes a process of its own, and holds nobody else up") {
  WorkerRig rig;
  WorkerOptions options = script(
      "case $a in 1 | 7) exit 9 ;; esac; "
      "case $line in *'\"id\":\"long\"'*) while [ ! -e $1 ]; do sleep 0.01; done ;; esac; " +
          kPid,
      {rig.dir / "go"});
  options.tasks_per_process = 2;
  options.processes = 1;
  const auto runner = rig.runner(options);
  start_task(rig, *runner, 1, "suspect");
  CHECK(rig.of(1).ending == Ending::kRetry);
  start_task(rig, *runner, 2, "long");
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  start_task(rig, *runner, 3, "suspect");
  // The attempt waits for the only process, which gets nothing else meanwhile.
  start_task(rig, *runner, 4, "other");
  CHECK(contains(runner->progress(AttemptId{3}), "waits for a process"));
  CHECK(contains(runner->progress(AttemptId{4}), "waits for a process"));
  write_file(rig.dir / "go", "");
  for (std::uint64_t id = 2; id <= 4; ++id) CHECK(rig.of(id).ending == Ending::kDone);

  options.processes = 2;
  const auto wide = rig.runner(options);
  std::filesystem::remove(rig.dir / "go");
  start_task(rig, *wide, 7, "suspect");
  CHECK(rig.of(7).ending == Ending::kRetry);
  start_task(rig, *wide, 5, "long");
  REQUIRE(eventually([&] { return wide->figures().busy == 1; }));
  start_task(rig, *wide, 6, "suspect");
  const std::string alone = rig.of(6).result.value();
  write_file(rig.dir / "go", "");
  CHECK(rig.of(5).result.value() != alone);
}

TEST_CASE("half a line for ever, or silence, lasts until the attempt is stopped") {
  WorkerRig rig;
  const auto runner = rig.runner(
      script(R"(printf '{"done":{"attempt":"' >&3; echo x > $1; sleep 1000)", {rig.dir / "said"}));
  rig.start(*runner, 1);
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  REQUIRE(eventually([&] { return !contents(rig.dir / "said").empty(); }));
  runner->stop(AttemptId{1}, 10ms);
  CHECK(rig.of(1).ending == Ending::kStopped);
  CHECK(contains(rig.of(1).error, "its last reply, 20 bytes, has no newline"));
}

TEST_CASE("a worker that is stopped by SIGSTOP is killed") {
  WorkerRig rig;
  const auto runner = rig.runner(script("echo $$ > $1; kill -STOP $$", {rig.dir / "pid"}));
  rig.start(*runner, 1);
  const pid_t pid = pid_in(rig.dir / "pid");
  runner->stop(AttemptId{1}, 10ms);
  CHECK(rig.of(1).ending == Ending::kStopped);
  CHECK(gone(pid));
}

TEST_CASE("a worker that floods its output is read, and the log is bounded") {
  WorkerRig rig;
  WorkerOptions options = script("head -c 20000000 /dev/zero; answer");
  options.program.log_directory = rig.dir.path();
  options.program.log_cap = 200'000;
  const auto runner = rig.runner(options);
  CHECK(rig.run(*runner, 1).ending == Ending::kDone);
  CHECK(contents(rig.dir / "oracle/7.1.1001.log").size() < 201'000);
  CHECK(contains(contents(rig.dir / "oracle/7.1.1001.log"), "bytes were left out"));
}

TEST_CASE("attempts that a process did not read go to another, and are not blamed") {
  WorkerRig rig;
  // The first process says "ready" and ends; the next ones work.
  const std::string first =
      "[ -e $1 ] || { touch $1; printf '{\"ready\":{\"protocol\":1}}\\n' >&3; "
      "read -r x < $2; exit 0; }; ";
  REQUIRE(mkfifo((rig.dir / "fifo").c_str(), 0600) == 0);
  WorkerOptions options = script("answer", {rig.dir / "once", rig.dir / "fifo"});
  options.program.argv[2] = first + options.program.argv[2];
  const auto runner = rig.runner(options);
  rig.start(*runner, 1);
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  write_file(rig.dir / "fifo", "go\n");
  CHECK(rig.of(1).ending == Ending::kDone);

  const auto deaf =
      rig.runner(bare_script("printf '{\"ready\":{\"protocol\":1}}\\n' >&3; sleep 0.05; exit 4"));
  const Exit exit = rig.run(*deaf, 2);
  CHECK(exit.ending == Ending::kNotStarted);
  CHECK(contains(exit.error, "the worker did not read the task: "));
  const auto closed = rig.runner(
      bare_script("exec 0<&-; printf '{\"ready\":{\"protocol\":1}}\\n' >&3; sleep 1000"));
  CHECK(contains(rig.run(*closed, 3).error, "closed its standard input"));
}

TEST_CASE("a worker that closes its standard input later, or with a task in it, is not fed on") {
  WorkerRig rig;
  // The worker reads nothing of the task that is in the pipe by then.
  const auto closed = rig.runner(bare_script(
      "printf '{\"ready\":{\"protocol\":1}}\\n' >&3; sleep 0.2; exec 0<&-; sleep 1000"));
  const Exit exit = rig.run(*closed, 1);
  CHECK(exit.ending == Ending::kNotStarted);
  CHECK(contains(exit.error, "closed its standard input"));
}

TEST_CASE("at the end of the room an attempt without an answer is stopped") {
  exec::test::Rig rig;
  auto room = std::make_unique<Room>(*rig.host, 4, 4);
  auto runner = std::move(WorkerRunner::create(*room, script(":")).value());
  REQUIRE(runner->start(attempt(1), Instant::max(), rig.exits.callback()).has_value());
  REQUIRE(eventually([&] { return runner->figures().busy == 1; }));
  runner.reset();
  room.reset();
  CHECK(rig.exits.of(AttemptId{1}).ending == Ending::kStopped);
}

TEST_CASE("processes that an attempt left running end with its process") {
  WorkerRig rig;
  auto runner = rig.runner(script("setsid sleep 1000 > /dev/null 2>&1 3>&- & echo $! > $1; answer",
                                  {rig.dir / "child"}));
  CHECK(rig.run(*runner, 1).ending == Ending::kDone);
  const pid_t child = pid_in(rig.dir / "child");
  CHECK_FALSE(gone(child));
  runner.reset();
  CHECK(eventually([&] { return gone(child); }));
}

TEST_CASE("a worker that ignores the end of its standard input is ended after its grace") {
  WorkerRig rig;
  WorkerOptions options =
      script("echo $$ > $1; answer; while :; do sleep 0.1; done", {rig.dir / "pid"});
  options.program.grace = 50ms;
  auto runner = rig.runner(options);
  CHECK(rig.run(*runner, 1).ending == Ending::kDone);
  runner.reset();
  CHECK(eventually([&] { return gone(pid_in(rig.dir / "pid")); }));
}

}  // namespace lictor::worker::test
