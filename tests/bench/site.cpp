#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "bench.h"
#include "lictor/worker.h"
#include "wire/txn.h"

namespace lictor::bench {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

Board* map_board(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  require(fd >= 0 && ftruncate(fd, sizeof(Board)) == 0, "cannot make " + path);
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  require(memory != MAP_FAILED, "cannot map " + path);
  return static_cast<Board*>(memory);
}

void note(Board& board, const std::string& id) {
  const std::int64_t now = live::monotonic_ns();
  const std::size_t at = board.marks.fetch_add(1);
  const std::size_t digits = id.rfind('-') + 1;
  std::int64_t task = -1;
  std::from_chars(id.data() + digits, id.data() + id.size(), task);
  if (at < Board::kMarks) board.mark[at] = {task, now};
  board.runs.fetch_add(1);
}

// The entries of a folder of /proc that are numbers. An entry that vanishes is no error.
std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::error_code gone;
  for (std::filesystem::directory_iterator it{folder, gone}, end; !gone && it != end;
       it.increment(gone)) {
    const int number = std::atoi(it->path().filename().c_str());
    if (number > 0) numbers.push_back(number);
  }
  return numbers;
}

// The process and its children (the warden).
std::vector<pid_t> family(pid_t pid) {
  std::vector<pid_t> pids = live::children_of(pid);
  pids.push_back(pid);
  return pids;
}

json configuration(const live::ConsulAgent& consul, const std::string& queue,
                   const std::string& node, const live::TemporaryFolder& folder) {
  json settings = json::parse(queue);
  settings["name"] = "default";
  settings["executors"]["True"] = {{"exec", {"/bin/true"}}};
  settings["executors"]["Program"] = {
      {"exec", {LICTOR_JOB_RECORDER, folder.file("journal"), "bench", "none"}}};
  return {{"node", node},
          {"state_dir", folder.file("state")},
          {"log", {{"level", "warn"}}},
          {"admin", {{"listen", {"127.0.0.1:0"}}}},
          {"consul", {{"addresses", {consul.address()}}}},
          {"queues", {settings}}};
}

}  // namespace

double median(std::vector<double> values) {
  require(!values.empty(), "nothing was measured");
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Latency summary(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  return {median(ms), ms[std::min(ms.size() - 1, ms.size() * 99 / 100)]};
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error{what};
}

void load(const live::ConsulAgent& consul, const std::string& prefix, std::size_t count,
          const MakeRecord& record) {
  constexpr std::size_t kBatch = 64, kConnections = 4;
  std::atomic<std::size_t> next = 0;
  static_cast<void>(in_parallel(consul, kConnections, [&](live::Kv& kv) {
    for (std::size_t at = 0; (at = next.fetch_add(kBatch)) < count;) {
      wire::Txn txn;
      for (std::size_t i = at; i < std::min(count, at + kBatch); ++i) {
        txn.verb("set", task_key(prefix, i)).value(record(i));
      }
      const auto answer = kv.request("PUT", "/v1/txn", std::move(txn).body());
      require(answer.status == 200, "cannot write the tasks: " + answer.body);
    }
  }));
}

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::vector<std::string> names_below(live::Kv& kv, const std::string& prefix) {
  const auto answer = kv.request("GET", "/v1/kv/" + prefix + "?keys");
  if (answer.status == 404) return {};
  require(answer.status == 200, "cannot list " + prefix + ": " + answer.body);
  auto names = answer.json().get<std::vector<std::string>>();
  std::erase_if(names, [](const std::string& name) { return name.ends_with('/'); });
  return names;
}

double core_percent(std::int64_t cpu_ns, std::chrono::milliseconds span) {
  return 100 * static_cast<double>(cpu_ns) / 1e6 / static_cast<double>(span.count());
}

double ms_between(std::int64_t from_ns, std::int64_t until_ns) {
  return static_cast<double>(until_ns - from_ns) / 1e6;
}

std::int64_t cpu_ns(pid_t pid) {
  std::int64_t total = 0;
  for (const pid_t each : family(pid)) {
    // A process's own schedstat is that of its first thread alone.
    const std::string threads = "/proc/" + std::to_string(each) + "/task/";
    for (const pid_t thread : numbers_in(threads)) {
      total += std::atoll(live::read_text(threads + std::to_string(thread) + "/schedstat").c_str());
    }
  }
  return total;
}

std::size_t resident_bytes(pid_t pid) {
  std::size_t kilobytes = 0;
  for (const pid_t each : family(pid)) {
    std::istringstream text{live::read_text("/proc/" + std::to_string(each) + "/smaps_rollup")};
    for (std::string line; std::getline(text, line);) {
      // A child's other pages are its parent's, and counted there.
      if (line.starts_with(each == pid ? "Rss:" : "Private_")) {
        kilobytes += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
      }
    }
  }
  return kilobytes * 1024;
}

Worker::Worker(const live::ConsulAgent& consul, const std::string& queue, const std::string& node,
               bool leader)
    : board_(map_board(folder_.file("board"))) {
  live::write_text(folder_.file("lictor.json"), configuration(consul, queue, node, folder_).dump());
  started_ns_ = live::monotonic_ns();
  process_ = std::make_unique<live::Process>(
      std::vector<std::string>{"/proc/self/exe", "lictor", "run", "--config",
                               folder_.file("lictor.json")},
      folder_.file("log"),
      std::map<std::string, std::string>{{"BENCH_BOARD", folder_.file("board")}});
  live::Kv kv{consul.address()};
  const bool ready = live::eventually([&] {
    if (!leader) return kv.has("lictor/default/members/" + node);
    for (const char* key : {kLeaderKey, "lictor/default/leader/16/0"}) {
      const auto lock = kv.get(key);
      if (lock && !lock->session.empty()) return true;
    }
    return false;
  });
  require(ready, "the daemon does not lead:\n" + live::read_text(folder_.file("log")));
}

Worker::~Worker() {
  process_.reset();
  munmap(board_, sizeof(Board));
}

void Worker::wait_for_runs(std::size_t count) const {
  const bool done = live::eventually([&] { return board_->runs.load() >= count; }, 10min);
  require(done, std::to_string(board_->runs.load()) + " of " + std::to_string(count) +
                    " tasks were run\n" + live::read_text(folder_.file("log")));
}

void Worker::wait_until_drained(live::Kv& kv, const std::string& last_key) const {
  // Polling would be work for Consul, 20,000 keys again and again: wait for the last task, which is
  // among the last to go, and only then for the rest. A sleep would count as drained.
  const std::int64_t until = live::monotonic_ns() + 600'000'000'000;
  const auto wait_for = [&](const std::string& key) {
    std::uint64_t index = 0;
    while (live::monotonic_ns() < until) {
      const auto answer =
          kv.request("GET", "/v1/kv/" + key + "?wait=10s&index=" + std::to_string(index));
      if (answer.status == 404) return;
      require(answer.status == 200, "cannot watch " + key + ": " + answer.body);
      index = answer.json().at(0).at("ModifyIndex").get<std::uint64_t>();
    }
  };
  wait_for(last_key);
  std::vector<std::string> left;
  while (!(left = names_below(kv, kTasksPrefix)).empty() && live::monotonic_ns() < until) {
    wait_for(left.back());
  }
  require(left.empty(), "the queue was not drained\n" + live::read_text(folder_.file("log")));
  require(names_below(kv, "lictor/default/dead/").empty(), "tasks have failed");
}

void Worker::stop() {
  process_->signal(SIGTERM);
  require(process_->wait() == 0, "the daemon did not stop as it should");
}

void run_program(std::string journal, const std::string& task) {
  std::string program = LICTOR_JOB_RECORDER, host = "bench", lock = "none";
  std::string id = "LICTOR_TASK_ID=" + task, attempt = "LICTOR_ATTEMPT=1";
  char* argv[] = {program.data(), journal.data(), host.data(), lock.data(), nullptr};
  char* environment[] = {id.data(), attempt.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &files, nullptr, argv, environment);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  require(error == 0 && waitpid(pid, &status, 0) == pid && status == 0, "the program failed");
}

int run_lictor(int argc, char** argv) {
  lictor::Worker worker;
  const char* path = std::getenv("BENCH_BOARD");
  if (path != nullptr) {
    Board* board = map_board(path);
    worker.add("Noop", [board](const Context&) { board->runs.fetch_add(1); });
    const std::string journal = std::filesystem::path{path}.replace_filename("journal");
    worker.add("Spawn",
               [journal](const Context& context) { run_program(journal, context.task().id); });
    const auto sleep = [](const Context& context) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds{context.task().parameters.at("ms").get<int>()});
    };
    worker.add("Sleep", [board, sleep](const Context& context) {
      sleep(context);
      board->runs.fetch_add(1);
    });
    worker.add("SleepMarked", [board, sleep](const Context& context) {
      sleep(context);
      note(*board, context.task().id);
    });
    worker.add("Mark", [board](const Context& context) { note(*board, context.task().id); });
  }
  return worker.main(argc, argv);
}

}  // namespace lictor::bench
