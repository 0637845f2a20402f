// How many instructions of its own the daemon spends on a task: counted by valgrind's callgrind, so
// that a figure is the same on a slow machine as on a fast one. What starting and leading cost is
// taken off, by the difference of two numbers of tasks.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "bench.h"

namespace lictor::bench {
namespace {

constexpr std::size_t kSmaller = 10;  // times fewer tasks in the smaller run

bool has_valgrind() {
  std::istringstream path{std::getenv("PATH") == nullptr ? "" : std::getenv("PATH")};
  for (std::string folder; std::getline(path, folder, ':');) {
    if (access((folder + "/valgrind").c_str(), X_OK) == 0) return true;
  }
  return false;
}

// callgrind's file holds "totals: N" in its last lines.
double total_of(const std::string& file) {
  const std::string label = "totals: ";
  std::istringstream lines{live::read_text(file)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(label)) return std::atof(line.c_str() + label.size());
  }
  require(false, "no totals in " + file);
  return 0;
}

double instructions(Bench& bench, std::size_t count, const std::string& queue) {
  return bench.on_consul([&](const auto& consul) {
    const live::TemporaryFolder folder;
    const std::string counts = folder.file("counts.");
    live::Kv kv{consul.address()};
    kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
    load(consul, kTasksPrefix, count, [](std::size_t i) { return task_record(i, "Noop"); });
    Worker worker{
        consul,
        queue,
        "bench-1",
        true,
        {"valgrind", "--quiet", "--tool=callgrind", "--callgrind-out-file=" + counts + "%p",
         std::filesystem::read_symlink("/proc/self/exe").string()}};
    kv.put("lictor/default/control", std::string{"{}"});
    worker.wait_until_drained(kv, task_key(kTasksPrefix, count - 1));
    require(worker.board().runs == count, "not every task was run once");
    worker.stop();
    return total_of(counts + std::to_string(worker.pid()));
  });
}

}  // namespace

void measure_instructions(Bench& bench) {
  if (!has_valgrind()) return bench.tell("instructions: left out, since there is no valgrind here");
  const std::size_t count = bench.sizes().drained;
  const std::size_t fewer = count / kSmaller;
  constexpr std::array<std::pair<const char*, const char*>, 2> kQueues{
      {{"64", R"({"concurrency": 64, "session_ttl": "60s"})"},
       {"1, prefetch 64", R"({"prefetch": 64, "session_ttl": "60s"})"}}};
  for (std::size_t i = 0; i < std::min(kQueues.size(), bench.sizes().counted_queues); ++i) {
    const auto& [name, queue] = kQueues[i];
    bench.tell(std::string{"instructions, concurrency "} + name);
    const double more = instructions(bench, count + fewer, queue);
    const double less = instructions(bench, fewer, queue);
    bench.add({"drain " + std::to_string(count) + ", concurrency " + name +
                   ": lictor's instructions a task",
               "", (more - less) / static_cast<double>(count)});
  }
}

}  // namespace lictor::bench
