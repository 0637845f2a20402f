// Measures lictor and raw Consul requests in one run.

#include "cli/bench.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <future>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Verb = Store::Op::Verb;

// Nobody else holds this lock, but Consul may be slow.
constexpr Duration kPatience = 60s;

struct BenchOptions {
  std::size_t tasks = 2'000;  // for each measurement
};

double seconds(Instant begin) { return std::chrono::duration<double>(boot_now() - begin).count(); }

// Fails after a signal, so that the calls end and destructors clean up.
Result<void> go_on() {
  return interrupted() ? fail(ErrorCode::kFailed, "interrupted") : Result<void>{};
}

// A queue for one measurement: a prefix of its own in Consul, a daemon, which is this program, and
// its folder. The destructor removes all of it. Blocks.
class Site {
 public:
  Site(Store& store, net::Options consul)
      : store_(store),
        consul_(std::move(consul)),
        root_(fmt::format("lictor-bench/{:016x}/", random_seed())) {}
  ~Site() {
    stop();
    clean();
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  [[nodiscard]] std::string key(std::size_t i) const { return task_key(tasks_prefix(), i); }
  [[nodiscard]] std::string tasks_prefix() const { return root_ + "q/tasks/"; }

  // Writes `count` no-op tasks.
  Result<void> load(std::size_t count) {
    std::vector<Store::Record> batch;
    for (std::size_t i = 0; i < count; ++i) {
      batch.push_back({key(i), task_record(i, "Noop")});
      if (batch.size() < Store::kMaxOperations && i + 1 < count) continue;
      if (auto on = go_on(); !on) return on;
      if (auto created = store_.create(batch); !created) return tl::unexpected(created.error());
      batch.clear();
    }
    return {};
  }

  // Starts a daemon and waits until it leads. `settings`: a JSON object, settings of the queue.
  Result<void> start(const std::string& settings) {
    if (auto made = make_folder(settings); !made) return made;
    std::array<std::string, 4> words{"lictor", "run", "--config", folder_ + "/lictor.json"};
    std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                              nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);  // our standard output is for the table
    const int error =
        posix_spawn(&daemon_, "/proc/self/exe", &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      daemon_ = -1;
      return fail(ErrorCode::kFailed, "cannot start the daemon: " + errno_text(error));
    }
    const Instant end = boot_now() + kPatience;
    for (std::uint64_t index = 0; boot_now() < end;) {
      if (auto on = go_on(); !on) return on;
      LICTOR_TRY(const auto leader, store_.watch(root_ + "q/leader", index, 1s));
      if (leader.entry && !leader.entry->session.empty()) return {};
      index = leader.index;
      if (waitpid(daemon_, nullptr, WNOHANG) == daemon_) {
        daemon_ = -1;
        break;
      }
    }
    return fail(ErrorCode::kFailed, "the daemon to be measured does not lead " + root_ +
                                        "q/leader; its log above says why");
  }

  Result<void> pause(bool on) {
    const std::string control = root_ + "q/control";
    LICTOR_TRY(const auto now, store_.get(control));
    const auto done = store_.replace(control, now ? now->modify_index : 0,
                                     on ? R"({"paused":{"by":"lictor bench"}})" : "{}");
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  // Waits until no task is left: first for the last task, then for an empty list, since tasks don't
  // end in the order of their keys.
  Result<void> wait_until_drained(std::size_t count) {
    const Instant end = boot_now() + kPatience + count * 5ms;
    std::uint64_t index = 0;
    while (boot_now() < end) {  // the last task is among the last to be deleted
      if (auto on = go_on(); !on) return on;
      LICTOR_TRY(const auto last, store_.watch(key(count - 1), index, 1s));
      index = last.index;
      if (last.entry) continue;
      LICTOR_TRY(const auto left, store_.list(tasks_prefix()));
      if (left.entries.size() <= 1) return {};  // the folder key
    }
    return fail(ErrorCode::kTimeout, "the tasks below " + tasks_prefix() + " were not drained");
  }

 private:
  // The daemon that is measured gets this command's options for Consul, and no admin API.
  Result<void> make_folder(const std::string& settings) {
    std::string folder = (std::filesystem::temp_directory_path() / "lictor-bench-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) {  // mode 0700: the configuration holds the token
      return fail(ErrorCode::kFailed, "cannot make the folder " + folder + ": " + errno_text() +
                                          "; set TMPDIR to a writable folder");
    }
    folder_ = folder;
    json consul{
        {"addresses", consul_.addresses}, {"register", false}, {"tls_verify", consul_.tls_verify}};
    for (const auto& [name, value] :
         {std::pair{"token_file", &consul_.token_file},
          {"token", consul_.token_file.empty() ? &consul_.token : &consul_.token_file},
          {"basic_auth", &consul_.basic_auth},
          {"ca_file", &consul_.ca_file},
          {"ca_path", &consul_.ca_path},
          {"client_cert", &consul_.client_cert},
          {"client_key", &consul_.client_key},
          {"tls_server_name", &consul_.tls_server_name},
          {"namespace", &consul_.consul_namespace},
          {"partition", &consul_.consul_partition}}) {
      if (!value->empty()) consul[name] = *value;
    }
    if (consul.contains("token_file")) consul.erase("token");
    json queue = json::parse(settings);
    queue["name"] = "q";
    queue["executors"] = {{"*", {{"noop", json::object()}}}};
    std::ofstream file{folder_ + "/lictor.json"};
    file << json{{"root", root_},
                 {"state_dir", folder_ + "/state"},
                 {"log", {{"level", "warn"}}},
                 {"admin", {{"listen", json::array()}}},
                 {"consul", consul},
                 {"queues", json::array({queue})}};
    file.flush();
    if (file) return {};
    return fail(ErrorCode::kFailed, "cannot write to the folder " + folder_);
  }

  void stop() {
    if (daemon_ > 0) {
      kill(daemon_, SIGTERM);
      waitpid(daemon_, nullptr, 0);
    }
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // After a failure, clean up with "consul kv delete -recurse lictor-bench/".
  void clean() {
    const auto left = store_.list(root_);
    if (!left) return;
    std::vector<Store::Change> changes;
    for (const auto& entry : left->entries) {
      changes.push_back({{Verb::kDeleteCas, entry.key, entry.modify_index}});
      if (changes.size() < Store::kMaxOperations && &entry != &left->entries.back()) continue;
      static_cast<void>(store_.apply(changes));
      changes.clear();
    }
  }

  Store& store_;
  const net::Options consul_;
  const std::string root_;
  std::string folder_;
  pid_t daemon_ = -1;
};

// Changes all tasks by raw transactions of `batch` tasks each, on `connections` at once. They have
// the shape that lictor sends: a CAS that grows the record by a claim, or a delete-cas.
Result<void> rewrite_all(Store& store, const std::string& prefix, Verb verb, std::size_t batch,
                         std::size_t connections) {
  LICTOR_TRY(const auto listed, store.list(prefix));
  const auto& entries = listed.entries;
  const auto part = [&](std::size_t first) -> Result<void> {
    for (std::size_t at = first * batch; at < entries.size(); at += connections * batch) {
      if (auto on = go_on(); !on) return on;
      std::vector<Store::Change> changes;
      for (std::size_t i = at; i < std::min(at + batch, entries.size()); ++i) {
        Store::Op op{verb, entries[i].key, entries[i].modify_index};
        if (verb == Verb::kCas) op.value = entries[i].value + std::string(200, ' ');  // a claim
        changes.push_back({std::move(op)});
      }
      if (auto done = store.apply(changes); !done) return tl::unexpected(done.error());
    }
    return {};
  };
  std::vector<std::future<Result<void>>> parts;
  for (std::size_t i = 1; i < connections; ++i) parts.push_back(std::async(part, i));
  Result<void> result = part(0);
  for (auto& each : parts) {
    if (auto done = each.get(); !done) result = done;
  }
  return result;
}

// Tasks a second that transactions of the same shape claim and delete, without lictor.
Result<double> raw_rate(const Client& client, const BenchOptions& options, std::size_t batch,
                        std::size_t connections) {
  Site site{client.store, client.consul};
  if (auto loaded = site.load(options.tasks); !loaded) return tl::unexpected(loaded.error());
  double spent = 0;
  for (const Verb verb : {Verb::kCas, Verb::kDeleteCas}) {
    const Instant begin = boot_now();
    auto done = rewrite_all(client.store, site.tasks_prefix(), verb, batch, connections);
    if (!done && done.error().code == ErrorCode::kTooLarge && batch >= limits::kLeastOperations) {
      return raw_rate(client, options, limits::kLeastOperations - 1, connections);  // before 1.14
    }
    if (!done) return tl::unexpected(done.error());
    spent += seconds(begin);
  }
  return static_cast<double>(options.tasks) / spent;
}

// The queue is paused while it is loaded and while the daemon starts, so only the draining is
// timed.
Result<double> drain_rate(const Client& client, const BenchOptions& options,
                          const std::string& settings) {
  Site site{client.store, client.consul};
  auto ready = site.pause(true).and_then([&] { return site.load(options.tasks); }).and_then([&] {
    return site.start(settings);
  });
  const Instant begin = boot_now();
  const auto drained = ready.and_then([&] { return site.pause(false); }).and_then([&] {
    return site.wait_until_drained(options.tasks);
  });
  if (!drained) return tl::unexpected(drained.error());
  return static_cast<double>(options.tasks) / seconds(begin);
}

// The median time in ms from the write of a task to the deletion of its key, one task at a time, by
// lictor or by raw requests. The raw side, too, follows the key by a blocking query, claims it and
// deletes it.
Result<double> round_trip(const Client& client, bool by_lictor) {
  constexpr std::size_t kTimes = 50;
  Site site{client.store, client.consul};
  if (by_lictor) {
    if (auto started = site.start("{}"); !started) return tl::unexpected(started.error());
  }
  std::vector<double> ms;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const std::string key = site.key(i);
    const std::string record = task_record(i, "Noop");
    const Instant begin = boot_now();
    const auto created = client.store.create({{key, record}});
    if (!created) return tl::unexpected(created.error());
    for (std::uint64_t index = 0;;) {
      if (auto on = go_on(); !on) return tl::unexpected(on.error());
      LICTOR_TRY(const auto seen, client.store.watch(key, index, 1s));
      if (!seen.entry) break;
      index = seen.index;
      if (by_lictor) continue;
      const Verb verb = seen.entry->value == record ? Verb::kCas : Verb::kDeleteCas;
      const auto done = client.store.apply(
          {{{verb, key, seen.entry->modify_index, verb == Verb::kCas ? record + " " : ""}}});
      if (!done) return tl::unexpected(done.error());
    }
    ms.push_back(seconds(begin) * 1e3);
  }
  std::sort(ms.begin(), ms.end());
  return ms[kTimes / 2];
}

struct Measured {
  const char* name;  // stable, for --json
  const char* what;
  const char* unit;
  double lictor = 0;
  double consul = 0;
};

Result<std::vector<Measured>> measure(const Client& client, const BenchOptions& options) {
  const auto progress = [&](const std::string& what) {
    client.console.progress("measuring: " + what + " ...");
  };
  progress("raw transactions");
  double best = 0;
  for (const std::size_t connections : {1, 2, 4}) {
    LICTOR_TRY(const double rate,
               raw_rate(client, options, limits::kMostOperations - 1, connections));
    best = std::max(best, rate);
  }
  BenchOptions few = options;  // for the slow measurements: one transaction a task
  few.tasks = options.tasks / 10 + 1;
  LICTOR_TRY(const double single, raw_rate(client, few, 1, 1));
  const char* const kRate = "tasks/s";
  std::vector<Measured> rows;
  const auto drain = [&](const char* name, const char* what, const char* settings, double raw,
                         const BenchOptions& how) -> Result<void> {
    progress(what);
    LICTOR_TRY(const double rate, drain_rate(client, how, settings));
    rows.push_back({name, what, kRate, rate, raw});
    return {};
  };
  auto drained =
      drain("drain_64", "drain, concurrency 64", R"({"concurrency":64})", best, options)
          .and_then([&] {
            return drain("drain_1_prefetch_64", "drain, concurrency 1, prefetch 64",
                         R"({"prefetch":64})", best, options);
          })
          .and_then([&] { return drain("drain_1", "drain, concurrency 1", "{}", single, few); });
  if (!drained) return tl::unexpected(std::move(drained.error()));
  progress("one task at a time");
  LICTOR_TRY(const double by_hand, round_trip(client, false));
  LICTOR_TRY(const double by_lictor, round_trip(client, true));
  rows.push_back({"round_trip", "one task, from its write to its end", "ms", by_lictor, by_hand});
  return rows;
}

}  // namespace

std::string task_record(std::size_t i, const std::string& type, std::int64_t due_ms,
                        std::size_t padding) {
  json record{
      {"taskId", fmt::format("bench-{}", i)},
      {"taskTime", std::to_string(1'445'599'887 + i)},
      {"taskTaken", "false"},
      {"taskType", type},
      {"taskPara",
       {{"instanceId", "db7"}, {"initSize", "8000"}, {"maxSize", "100000"}, {"stepSize", "2000"}}}};
  if (due_ms != 0) record["executeAt"] = due_ms;
  if (padding != 0) record["taskPara"]["note"] = std::string(padding, 'x');
  return record.dump();
}

std::string task_key(const std::string& prefix, std::size_t i) {
  return fmt::format("{}{:08}", prefix, i);
}

namespace {

Result<int> bench(const Client& client, const BenchOptions& options) {
  catch_signals(SecondSignal::kIgnored);
  const auto rows = measure(client, options);
  client.console.end_progress();
  if (!rows) return tl::unexpected(rows.error());
  Table table{{"MEASURED", "UNIT", "LICTOR", "CONSUL ALONE", "RATIO"}};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [name, what, unit, lictor, consul] : *rows) {
    const int digits = unit == std::string_view{"ms"} ? 1 : 0;
    const double ratio = lictor / consul;
    table.add_row({{what},
                   {unit},
                   {fmt::format("{:.{}f}", lictor, digits)},
                   {fmt::format("{:.{}f}", consul, digits)},
                   {fmt::format("{:.2f}", ratio)}});
    list.push_back(
        {{"name", name}, {"unit", unit}, {"lictor", lictor}, {"consul", consul}, {"ratio", ratio}});
  }
  if (client.json) {
    client.console.print(json_document({{"tasks", options.tasks}, {"measured", list}}));
  } else {
    client.console.print(table.render(client.console.width()));
  }
  return kDone;
}

}  // namespace

void add_bench(Commands& to) {
  auto [command, options] = to.add(
      "bench", "Measure lictor beside Consul alone",
      R"(Runs a separate daemon with no-op tasks, and the same writes without lictor, below the prefix
lictor-bench/, which it empties afterwards. Loads Consul for about a minute.

Examples:
  lictor bench
  lictor bench --tasks 20000 --json | jq '.measured[] | {name, ratio}'
)",
      bench, {.queue = Command::Queue::kIsOwn});
  command.count("--tasks", options.tasks, "Tasks for each figure (default: 2000)", 1);
}

}  // namespace lictor::cli
