// Many short programs: /bin/true, two at a time.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "base/clock.h"
#include "bench.h"
#include "exec/process_runner.h"

namespace lictor::bench {
namespace {

struct Spawned {
  double rate = 0;    ///< programs/s
  double cpu_us = 0;  ///< processor time a program: its own and ours
};

double cpu_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The cost of a minimal program, as one would write it in C.
Spawned spawn(std::size_t count) {
  char path[] = "/bin/true";
  char* argv[] = {path, nullptr};
  const double cpu_before = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
  const std::int64_t begin = live::monotonic_ns();
  std::size_t running = 0;
  for (std::size_t started = 0; started < count || running > 0;) {
    if (started < count && running < 2) {
      pid_t pid = -1;
      require(posix_spawn(&pid, path, nullptr, nullptr, argv, environ) == 0, "cannot spawn");
      ++started;
      ++running;
      continue;
    }
    int status = 0;
    require(wait(&status) > 0 && status == 0, "/bin/true failed");
    --running;
  }
  const double seconds = live::seconds_between(begin, live::monotonic_ns());
  const double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu_before;
  const auto programs = static_cast<double>(count);
  return {programs / seconds, cpu * 1e6 / programs};
}

double run_alone(std::size_t count) {
  const live::TemporaryFolder folder;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0, failed = 0;
  auto board = exec::LeaseBoard::create(8);
  require(board.has_value(), "no memory to share with the warden");
  auto warden = exec::start_warden(*board, {});
  require(warden.has_value(), "no warden");
  auto host = exec::ProcessHost::create(std::move(*warden), *board, {});
  require(host.has_value(), "cannot watch the warden");
  exec::ProcessOptions options;
  options.argv = {"/bin/true"};
  options.slot = 0;
  options.log_directory = folder.file("logs");
  options.scratch_directory = folder.file("scratch");
  (*host)->set_lease(0, boot_now() + 1h, 1s);
  auto runner = exec::ProcessRunner::create(**host, options);
  require(runner.has_value(), "no runner");

  const auto on_exit = [&](const exec::Exit& exit) {
    const std::lock_guard lock{mutex};
    --running;
    if (exit.ending != exec::Ending::kDone) ++failed;
    ended.notify_one();
  };
  const std::int64_t begin = live::monotonic_ns();
  std::unique_lock lock{mutex};
  for (std::size_t i = 0; i < count; ++i) {
    ended.wait(lock, [&] { return running < 2; });
    ++running;
    lock.unlock();
    const exec::Attempt attempt{AttemptId{i + 1},
                                "default",
                                "bench-" + std::to_string(i),
                                task_key(kTasksPrefix, i),
                                std::to_string(i),
                                "True",
                                1,
                                i + 1,
                                0,
                                std::make_shared<const std::string>(task_record(i, "True"))};
    require((*runner)->start(attempt, Instant::max(), on_exit).has_value(), "cannot start");
    lock.lock();
  }
  ended.wait(lock, [&] { return running == 0; });
  require(failed == 0, "/bin/true failed");
  return static_cast<double>(count) / live::seconds_between(begin, live::monotonic_ns());
}

// lictor's executor with neither queue nor Consul around it. In a process of its own, since it is
// to become a subreaper and the warden's parent.
double executor_rate(std::size_t count) {
  std::array<int, 2> pipe{};
  require(pipe2(pipe.data(), O_CLOEXEC) == 0, "cannot make a pipe");
  const pid_t pid = fork();
  require(pid >= 0, "cannot fork");
  if (pid == 0) {
    double rate = 0;
    try {
      rate = run_alone(count);
    } catch (const std::exception& error) {
      Bench::progress(error.what());
    }
    _exit(write(pipe[1], &rate, sizeof(rate)) == sizeof(rate) ? 0 : 1);
  }
  close(pipe[1]);
  double rate = 0;
  const bool is_read = read(pipe[0], &rate, sizeof(rate)) == sizeof(rate);
  close(pipe[0]);
  int status = 0;
  require(waitpid(pid, &status, 0) == pid && is_read && rate > 0, "the executor alone failed");
  return rate;
}

}  // namespace

void measure_programs(Bench& bench) {
  const std::size_t count = bench.sizes().programs;
  Runs runs;
  std::vector<double> rate, cpu_us, alone;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.progress("programs, run " + std::to_string(run + 1));
    runs.push_back(bench.on_consul([&](const auto& consul) {
      // Consul is this process's child, too, but does not end.
      const Spawned spawned = spawn(count);
      rate.push_back(spawned.rate);
      cpu_us.push_back(spawned.cpu_us);
      alone.push_back(executor_rate(count));
      return drain(consul, count, R"({"concurrency": 2})", "True");
    }));
  }
  const std::string against = "posix_spawn and wait, two at a time";
  const std::string name = "exec /bin/true, " + std::to_string(count) + ", concurrency 2";
  bench.add({name, "tasks/s", median_of(runs, &Drained::rate), median(rate), against,
             Row::Wanted::kRatioAtLeast, 0.8});
  bench.add({name + ": lictor's processor time a task", "us", median_of(runs, &Drained::daemon_us),
             median(cpu_us), "posix_spawn's and the program's own"});
  bench.add({name + ", the executor alone", "tasks/s", median(alone), median(rate), against,
             Row::Wanted::kRatioAtLeast, 0.8});
}

}  // namespace lictor::bench
