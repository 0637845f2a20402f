// Many short programs: /bin/true, two at a time.

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

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

// The least that a program can do: as one would write it in C.
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

double median_of(const std::vector<Drained>& runs, double Drained::*figure) {
  std::vector<double> values;
  for (const Drained& run : runs) values.push_back(run.*figure);
  return median(std::move(values));
}

}  // namespace

void measure_programs(Bench& bench) {
  const std::size_t count = bench.sizes().programs;
  std::vector<Drained> plain, ahead;
  std::vector<double> rate, cpu_us;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("programs, run " + std::to_string(run + 1));
    plain.push_back(bench.on_consul([&](const auto& consul) {
      // Consul is this process's child, too, but does not end.
      const Spawned spawned = spawn(count);
      rate.push_back(spawned.rate);
      cpu_us.push_back(spawned.cpu_us);
      return drain(consul, count, R"({"concurrency": 2})", "True");
    }));
    ahead.push_back(bench.on_consul([&](const auto& consul) {
      return drain(consul, count, R"({"concurrency": 2, "prefetch": 64})", "True");
    }));
  }
  const std::string against = "posix_spawn and wait, two at a time";
  const auto report = [&](const std::string& name, const std::vector<Drained>& runs) {
    bench.add({name, "tasks/s", median_of(runs, &Drained::rate), median(rate), against,
               Row::Wanted::kRatioAtLeast, 0.8});
    bench.add({name + ": lictor's processor time a task", "us",
               median_of(runs, &Drained::daemon_us), median(cpu_us),
               "posix_spawn's and the program's own"});
    bench.add({name + ": Consul's processor time a task", "us",
               median_of(runs, &Drained::consul_us), median(cpu_us),
               "posix_spawn's and the program's own"});
  };
  const std::string name = "exec /bin/true, " + std::to_string(count) + ", concurrency 2";
  report(name, plain);
  report(name + ", prefetch 64", ahead);
}

}  // namespace lictor::bench
