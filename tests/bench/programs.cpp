// Many short programs: /bin/true, two at a time.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

namespace lictor::bench {
namespace {

// The least that a program can do: as one would write it in C.
double spawn_rate(std::size_t count) {
  char path[] = "/bin/true";
  char* argv[] = {path, nullptr};
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
  return static_cast<double>(count) / live::seconds_between(begin, live::monotonic_ns());
}

}  // namespace

void measure_programs(Bench& bench) {
  const std::size_t count = bench.sizes().programs;
  std::vector<double> plain, ahead, spawned;
  for (std::size_t run = 0; run < bench.sizes().runs; ++run) {
    bench.tell("programs, run " + std::to_string(run + 1));
    plain.push_back(bench.on_consul([&](const auto& consul) {
      // Consul is this process's child, too, but does not end.
      spawned.push_back(spawn_rate(count));
      return drain(consul, count, R"({"concurrency": 2})", "True").rate;
    }));
    ahead.push_back(bench.on_consul([&](const auto& consul) {
      return drain(consul, count, R"({"concurrency": 2, "prefetch": 64})", "True").rate;
    }));
  }
  const std::string against = "posix_spawn and wait, two at a time";
  const std::string name = "exec /bin/true, " + std::to_string(count) + ", concurrency 2";
  bench.add(
      {name, "tasks/s", median(plain), median(spawned), against, Row::Wanted::kRatioAtLeast, 0.8});
  bench.add({name + ", prefetch 64", "tasks/s", median(ahead), median(spawned), against,
             Row::Wanted::kRatioAtLeast, 0.8});
}

}  // namespace lictor::bench
