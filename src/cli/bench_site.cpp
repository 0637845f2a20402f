#include "cli/bench_site.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/process.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// Nobody else holds this lock, but Consul may be slow.
constexpr Duration kPatience = 60s;

}  // namespace

std::string task_record(std::size_t i, const std::string& type, std::int64_t due_ms,
                        std::size_t padding) {
  json record{
      {"taskId", "bench-" + std::to_string(i)},
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
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "%08zu", i);
  return prefix + name.data();
}

BenchSite::BenchSite(client::Store& store, net::Options consul)
    : store_(store), consul_(std::move(consul)) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "%016llx",
                static_cast<unsigned long long>(random_seed()));
  root_ = std::string{"lictor-bench/"} + name.data() + "/";
}

BenchSite::~BenchSite() {
  stop();
  clean();
}

Result<void> BenchSite::go_on() {
  return interrupted() ? fail(ErrorCode::kFailed, "interrupted") : Result<void>{};
}

Result<void> BenchSite::load(std::size_t count, std::optional<WallTime> due) {
  const std::int64_t due_ms = due ? due->time_since_epoch().count() : 0;
  std::vector<client::Store::Record> batch;
  for (std::size_t i = 0; i < count; ++i) {
    batch.push_back({key(i), task_record(i, "Noop", due_ms)});
    if (batch.size() < client::Store::kMaxOperations && i + 1 < count) continue;
    if (auto on = go_on(); !on) return on;
    if (auto created = store_.create(batch); !created) return tl::unexpected(created.error());
    batch.clear();
  }
  return {};
}

Result<void> BenchSite::make_folder(const std::string& settings) {
  std::string folder = (std::filesystem::temp_directory_path() / "lictor-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {  // mode 0700: the configuration holds the token
    return fail(ErrorCode::kFailed, "cannot make the folder " + folder + ": " + errno_text() +
                                        "; set TMPDIR to one that may hold "
                                        "files");
  }
  folder_ = folder;
  json consul{
      {"addresses", consul_.addresses}, {"register", false}, {"tls_verify", consul_.tls_verify}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) consul[name] = value;
  };
  if (!consul_.token_file.empty()) {
    consul["token_file"] = consul_.token_file;
  } else {
    add("token", consul_.token);
  }
  add("basic_auth", consul_.basic_auth);
  add("ca_file", consul_.ca_file);
  add("ca_path", consul_.ca_path);
  add("client_cert", consul_.client_cert);
  add("client_key", consul_.client_key);
  add("tls_server_name", consul_.tls_server_name);
  add("namespace", consul_.consul_namespace);
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
  return file ? Result<void>{} : fail(ErrorCode::kFailed, "cannot write to the folder " + folder_);
}

Result<void> BenchSite::start(const std::string& settings) {
  if (auto made = make_folder(settings); !made) return made;
  std::string config = folder_ + "/lictor.json";
  std::array<std::string, 4> words{"lictor", "run", "--config", config};
  std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                            nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);  // our standard output is for the table
  const int error = posix_spawn(&daemon_, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    daemon_ = -1;
    return fail(ErrorCode::kFailed, std::string{"cannot start the daemon: "} + errno_text(error));
  }
  const Instant end = boot_now() + kPatience;
  for (std::uint64_t index = 0; boot_now() < end;) {
    if (auto on = go_on(); !on) return on;
    LICTOR_TRY(auto leader, store_.watch(root_ + "q/leader", index, 1s));
    if (leader.entry && !leader.entry->session.empty()) return {};
    index = leader.index;
    if (waitpid(daemon_, nullptr, WNOHANG) == daemon_) {
      daemon_ = -1;
      break;
    }
  }
  return fail(ErrorCode::kFailed, "the daemon that was to be measured does not lead " + root_ +
                                      "q/leader; what it said stands above");
}

void BenchSite::stop() {
  if (daemon_ > 0) {
    kill(daemon_, SIGTERM);
    waitpid(daemon_, nullptr, 0);
    daemon_ = -1;
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  folder_.clear();
}

Result<void> BenchSite::pause(bool on) {
  const std::string control = root_ + "q/control";
  const auto now = store_.get(control);
  if (!now) return tl::unexpected(now.error());
  const auto done = store_.replace(control, *now ? (*now)->modify_index : 0,
                                   on ? R"({"paused":{"by":"lictor bench"}})" : "{}");
  if (!done) return tl::unexpected(done.error());
  return {};
}

Result<void> BenchSite::wait_until_drained(std::size_t count) {
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

// After a failure, clean up with "consul kv delete -recurse lictor-bench/".
void BenchSite::clean() {
  const auto left = store_.list(root_);
  if (!left) return;
  std::vector<client::Store::Change> changes;
  for (std::size_t i = 0; i < left->entries.size(); ++i) {
    const auto& entry = left->entries[i];
    changes.push_back({{client::Store::Op::Verb::kDeleteCas, entry.key, entry.modify_index}});
    if (changes.size() < client::Store::kMaxOperations && i + 1 < left->entries.size()) continue;
    static_cast<void>(store_.apply(changes));
    changes.clear();
  }
}

}  // namespace lictor::cli
