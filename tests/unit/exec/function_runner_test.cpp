#include "exec/function_runner.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/read_file.h"
#include "exec/noop_runner.h"
#include "support.h"

namespace lictor::exec::test {
namespace {

Exit until_stopped(const Attempt&, const JobTools& tools) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock{mutex};
  stopped.wait(lock, tools.stop, [] { return false; });
  return {.ending = Ending::kStopped};
}

// A runner of `function`, and the ends of its attempts.
struct Scene {
  explicit Scene(JobFunction function, std::size_t threads = 1)
      : runner(std::move(function), board, threads) {}

  void start(std::uint64_t id, Instant deadline = Instant::max()) {
    REQUIRE(runner.start(attempt(id), deadline, exits.callback()));
  }
  [[nodiscard]] Exit of(std::uint64_t id) { return exits.of(AttemptId{id}); }

  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  Exits exits;
  FunctionRunner runner;
};

// How often a job did not run on the thread of the one before it.
int changes_of(const std::vector<pid_t>& threads) {
  int changes = 0;
  for (std::size_t i = 1; i < threads.size(); ++i) changes += threads[i] != threads[i - 1];
  return changes;
}

}  // namespace

TEST_CASE("a function gets its attempt and deadline, and its answer is the exit") {
  const Instant deadline = boot_now() + 1h;
  Scene scene{[&](const Attempt& attempt, const JobTools& tools) {
    return Exit{.ending = tools.deadline == deadline ? Ending::kPermanent : Ending::kDone,
                .error = attempt.task_id,
                .result = "1"};
  }};
  scene.start(1, deadline);
  const Exit exit = scene.of(1);
  CHECK(exit.ending == Ending::kPermanent);
  CHECK(exit.error == "7");
  CHECK(exit.result == "1");
}

TEST_CASE("the thread that has worked last works next, and the others' memory is left alone") {
  std::vector<pid_t> threads;  // one at a time
  Scene scene{[&](const Attempt&, const JobTools&) {
                threads.push_back(static_cast<pid_t>(syscall(SYS_gettid)));
                return Exit{};
              },
              8};
  for (std::uint64_t i = 1; i <= 40; ++i) {
    scene.start(i);
    (void)scene.of(i);
    const std::string stat = "/proc/self/task/" + std::to_string(threads.back()) + "/stat";
    REQUIRE(eventually([&] { return contents(stat).find(") S ") != std::string::npos; }));
  }
  CHECK(changes_of(threads) < 10);  // each of the others may come to rest only now
}

TEST_CASE("an end that starts the next job is lent its thread, which then runs that job") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  std::vector<pid_t> threads;  // one at a time
  std::promise<void> all;
  FunctionRunner runner{[&](const Attempt&, const JobTools&) {
                          threads.push_back(static_cast<pid_t>(syscall(SYS_gettid)));
                          return Exit{};
                        },
                        board, 3};
  const std::function<void(Exit)> next = [&](const Exit& exit) {
    CHECK(exit.spares_thread);
    if (threads.size() == 100) return all.set_value();
    REQUIRE(runner.start(attempt(threads.size() + 1), Instant::max(), next));
  };
  REQUIRE(runner.start(attempt(1), Instant::max(), next));
  all.get_future().get();
  CHECK(changes_of(threads) < 10);  // each of the others may come upon one as it begins
}

TEST_CASE("a thread is not lent while another job waits for it") {
  std::latch begin{1};
  Scene scene{[&](const Attempt&, const JobTools&) {
    begin.wait();
    return Exit{};
  }};
  scene.start(1);
  scene.start(2);
  begin.count_down();
  CHECK_FALSE(scene.of(1).spares_thread);
  CHECK(scene.of(2).spares_thread);
}

TEST_CASE("of several jobs that an end starts, others are run by other threads") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  std::latch together{2};
  FunctionRunner runner{[&](const Attempt& attempt, const JobTools&) {
                          if (attempt.id != AttemptId{1}) together.arrive_and_wait();
                          return Exit{};
                        },
                        board, 2};
  Exits exits;
  REQUIRE(runner.start(attempt(1), Instant::max(), [&](const Exit&) {
    REQUIRE(runner.start(attempt(2), Instant::max(), exits.callback()));
    REQUIRE(runner.start(attempt(3), Instant::max(), exits.callback()));
  }));
  CHECK(exits.of(AttemptId{2}).ending == Ending::kDone);
  CHECK(exits.of(AttemptId{3}).ending == Ending::kDone);
}

TEST_CASE("a thread is started when a job finds none idle, and is kept") {
  const auto threads = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& thread :
         std::filesystem::directory_iterator{"/proc/self/task"}) {
      ++count;
    }
    return count;
  };
  const std::size_t before = threads();
  std::latch together{4};
  Scene scene{[&](const Attempt& attempt, const JobTools&) {
                if (attempt.id.value > 1) together.arrive_and_wait();
                return Exit{};
              },
              10'000};
  CHECK(threads() == before);
  scene.start(1);
  (void)scene.of(1);
  CHECK(threads() == before + 1);
  for (std::uint64_t i = 2; i <= 4; ++i) scene.start(i);
  CHECK(eventually([&] { return threads() == before + 3; }));
  together.arrive_and_wait();
  scene.exits.wait_for(4);
  CHECK(threads() == before + 3);
}

TEST_CASE("an exception is a failure to be tried again") {
  Scene scene{[](const Attempt& attempt, const JobTools&) -> Exit {
    if (attempt.id == AttemptId{1}) throw std::runtime_error{"no space"};
    throw 7;  // NOLINT
  }};
  scene.start(1);
  scene.start(2);
  CHECK(scene.of(1).ending == Ending::kRetry);
  CHECK(scene.of(1).error == "no space");
  CHECK(scene.of(2).ending == Ending::kRetry);
}

TEST_CASE("a job that calls exit() ends its process, which says so and does not look stopped") {
  bool on_thread = false;
  SUBCASE("on its own thread") {}
  SUBCASE("on a thread of its own making") { on_thread = true; }
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  const UniqueFd reader{pipe[0]};
  UniqueFd writer{pipe[1]};
  const pid_t child = fork();
  if (child == 0) {
    dup2(writer.get(), STDERR_FILENO);
    Scene scene{[&](const Attempt&, const JobTools&) -> Exit {
      if (on_thread) std::thread{[] { std::exit(EXIT_SUCCESS); }}.join();
      std::exit(EXIT_SUCCESS);
    }};
    (void)scene.runner.start(attempt(1), Instant::max(), [](const Exit&) {});
    while (true) pause();
  }
  writer.reset();
  const std::string said = read_up_to(reader.get(), 1'000).value();
  CHECK(contains(
      said, on_thread ? "a thread of a C++ job called exit()" : "the job of task 7 called exit()"));
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == EXIT_FAILURE);
}

TEST_CASE("the text of a failure is cut, and a missing text is replaced") {
  Scene scene{[](const Attempt& attempt, const JobTools&) -> Exit {
    if (attempt.id == AttemptId{1}) throw std::runtime_error{std::string(2'000'000, 'x')};
    return ended(attempt.id, Ending::kPermanent);
  }};
  scene.start(1);
  scene.start(2);
  CHECK(scene.of(1).error.size() == 4'000 + 3);
  CHECK(scene.of(1).error.ends_with("x..."));
  CHECK(scene.of(2).error == "it gave no reason");
}

TEST_CASE("a function's progress can be read while it runs") {
  std::latch said{1};
  Scene scene{[&](const Attempt& attempt, const JobTools& tools) {
    tools.note_progress("first");
    tools.note_progress("second");
    said.count_down();
    return until_stopped(attempt, tools);
  }};
  scene.start(1);
  said.wait();
  CHECK(scene.runner.progress(AttemptId{1}) == "second");
  CHECK(scene.runner.progress(AttemptId{2}).empty());
  scene.runner.stop(AttemptId{1}, 0ms);
  (void)scene.of(1);
  CHECK(scene.runner.progress(AttemptId{1}).empty());
}

TEST_CASE("as many functions run at once as there are threads; stop reaches waiting ones, too") {
  std::latch both{2};
  std::atomic<int> ran = 0;
  Scene scene{[&](const Attempt& attempt, const JobTools& tools) {
                ++ran;
                both.arrive_and_wait();
                return until_stopped(attempt, tools);
              },
              2};
  for (std::uint64_t id = 1; id <= 3; ++id) scene.start(id);
  both.wait();
  scene.runner.stop(AttemptId{3}, 0ms);
  CHECK(scene.of(3).error == "stopped before it started");
  CHECK_FALSE(scene.exits.has(AttemptId{1}));
  scene.runner.stop(AttemptId{1}, 0ms);
  scene.runner.stop(AttemptId{1}, 0ms);
  CHECK(scene.of(1).ending == Ending::kStopped);
  scene.runner.stop(AttemptId{2}, 0ms);
  CHECK(scene.of(2).ending == Ending::kStopped);
  scene.runner.stop(AttemptId{2}, 0ms);
  CHECK(ran == 2);
}

TEST_CASE("jobs are counted on the board from their start until before their end is reported") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  (void)board.extend(4, boot_now() + 1h, 5s);
  FunctionRunner runner{until_stopped, board, 1, 4};
  FunctionRunner outlives{until_stopped, board};
  Exits exits;
  std::atomic<std::uint32_t> at_exit = 99;
  REQUIRE(runner.start(attempt(1), Instant::max(), [&, told = exits.callback()](Exit exit) {
    at_exit = board.in_process_jobs(4);
    told(std::move(exit));
  }));
  REQUIRE(runner.start(attempt(2), Instant::max(), exits.callback()));
  REQUIRE(outlives.start(attempt(3), Instant::max(), exits.callback()));
  CHECK(board.in_process_jobs(4) == 2);
  runner.stop(AttemptId{2}, 0ms);
  CHECK(board.in_process_jobs(4) == 1);
  runner.stop(AttemptId{1}, 0ms);
  (void)exits.of(AttemptId{1});
  CHECK(at_exit == 0);
  board.clear(4);
  CHECK(runner.start(attempt(5), Instant::max(), exits.callback()).error().code ==
        ErrorCode::kUnavailable);
  CHECK(board.in_process_jobs(4) == 0);
}

TEST_CASE("the runner's end asks all to stop and waits, and each end is reported") {
  LeaseBoard board = std::move(LeaseBoard::create(8).value());
  Exits exits;
  {
    // Foreign code that is called by the stop may ask its runner for something.
    FunctionRunner runner{
        [](const Attempt& attempt, const JobTools& tools) {
          const std::stop_callback on_stop{tools.stop, [&] { tools.note_progress("stopping"); }};
          return until_stopped(attempt, tools);
        },
        board};
    for (std::uint64_t id = 1; id <= 3; ++id) {
      REQUIRE(runner.start(attempt(id), Instant::max(), exits.callback()));
    }
  }
  for (std::uint64_t id = 1; id <= 3; ++id) CHECK(exits.has(AttemptId{id}));
}

TEST_CASE("no sleep, no thread: the end is reported within the start") {
  NoopRunner runner{0ms};
  Exits exits;
  REQUIRE(runner.start(attempt(1), Instant::max(), exits.callback()));
  REQUIRE(exits.has(AttemptId{1}));
  CHECK(exits.of(AttemptId{1}).ending == Ending::kDone);
  runner.stop(AttemptId{1}, 0ms);
}

TEST_CASE("each sleeps its time, all at once") {
  NoopRunner runner{20ms};
  Exits exits;
  const Instant begin = boot_now();
  for (std::uint64_t id = 1; id <= 500; ++id) {
    REQUIRE(runner.start(attempt(id), Instant::max(), exits.callback()));
  }
  exits.wait_for(500);
  CHECK(boot_now() - begin >= 20ms);
  CHECK(boot_now() - begin < 5s);  // One after the other would take 10.
  CHECK(exits.of(AttemptId{500}).ending == Ending::kDone);
}

TEST_CASE("a stop ends a sleep at once, and so does the runner's end") {
  Exits exits;
  {
    NoopRunner runner{1h};
    REQUIRE(runner.start(attempt(1), Instant::max(), exits.callback()));
    REQUIRE(runner.start(attempt(2), Instant::max(), exits.callback()));
    runner.stop(AttemptId{1}, 0ms);
    CHECK(exits.of(AttemptId{1}).ending == Ending::kStopped);
    runner.stop(AttemptId{1}, 0ms);
    runner.stop(AttemptId{7}, 0ms);
    CHECK_FALSE(exits.has(AttemptId{2}));
  }
  CHECK(exits.of(AttemptId{2}).ending == Ending::kStopped);
}

}  // namespace lictor::exec::test
