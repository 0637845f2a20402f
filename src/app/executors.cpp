// Makes runners from the configured executors. Their attempts run in different places:
//
//   exec          ProcessRunner    a program for each attempt, a child of the warden
//   worker        WorkerRunner     a process that stays, also a child of the warden
//   http          HttpRunner       a thread of the daemon; the work is done elsewhere
//   cpp, plugin   FunctionRunner   threads of the daemon, which can only be killed with it
//   noop          NoopRunner       nowhere
//
// All but noop end with the lease of their partition, unless on_lease_lost is "finish".

#include "app/executors.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "exec/http_runner.h"
#include "exec/noop_runner.h"
#include "exec/plugin.h"
#include "exec/process_runner.h"
#include "worker/worker_runner.h"

namespace lictor::app {
namespace {

// The folder of the files that LICTOR_COMMIT and LICTOR_RESULT name.
std::string scratch_of(const Config& config) { return config.state_dir + "/scratch"; }

bool ends_with_lease(const RunnerParts& parts, const std::string& type) {
  return parts.queue.options.policy_of(type)->on_lease_lost == core::OnLeaseLost::kStop;
}

// The lease that jobs inside the daemon end with.
exec::LeaseSlot lease_of(const RunnerParts& parts, const std::string& type) {
  return ends_with_lease(parts, type) ? parts.slot : exec::kNoLease;
}

// Jobs of other users come to their part of the scratch folder through state_dir.
void let_jobs_pass(const Config& config) {
  struct stat status {};
  if (stat(config.state_dir.c_str(), &status) != 0) return;
  chmod(config.state_dir.c_str(), (status.st_mode & 07777U) | S_IXOTH);
}

// Sets the options of a program or a worker that come from its queue and daemon. The warden ends
// both by the lease of the slot, also when the daemon is dead: so they get the slot itself and
// `ends_with_lease`, while jobs inside the daemon get lease_of().
void set_up(const RunnerParts& parts, const std::string& type, exec::ProcessOptions& options) {
  options.slot = parts.slot;
  options.ends_with_lease = ends_with_lease(parts, type);
  options.grace = parts.queue.options.kill_grace;
  options.log_directory = log_directory(parts.config);
  options.active_logs = parts.active_logs;
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts& parts, const std::string& type,
                                           ExecConfig options) {
  if (options.user) let_jobs_pass(parts.config);
  set_up(parts, type, options);
  options.scratch_directory = scratch_of(parts.config);
  return exec::ProcessRunner::create(parts.host, std::move(options));
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts& parts, const std::string& type,
                                           WorkerConfig options) {
  set_up(parts, type, options.program);
  options.queue = parts.queue.options.queue;
  options.type = type;
  return worker::WorkerRunner::create(parts.workers, std::move(options));
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts&, const std::string&,
                                           const NoopConfig& config) {
  return std::make_unique<exec::NoopRunner>(config.sleep);
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts& parts, const std::string& type,
                                           const HttpConfig& config) {
  return exec::HttpRunner::create(parts.host.board(), config, lease_of(parts, type));
}

std::unique_ptr<exec::Runner> make_function(const RunnerParts& parts, const std::string& type,
                                            std::shared_ptr<Executor> executor) {
  return std::make_unique<exec::FunctionRunner>(
      [executor = std::move(executor)](const exec::Attempt& attempt, const exec::JobTools& tools) {
        return run_in_process(*executor, attempt, tools);
      },
      parts.host.board(), parts.queue.options.concurrency, lease_of(parts, type));
}

Result<std::shared_ptr<Executor>> load(const std::string& type, const PluginConfig& config) {
  auto executor = exec::plugin_executor(config.file, config.executor, type);
  if (executor) return executor;
  return fail(executor.error().code, config.where + executor.error().message);
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts& parts, const std::string& type,
                                           const PluginConfig& config) {
  LICTOR_TRY(auto executor, load(type, config));
  return make_function(parts, type, std::move(executor));
}

Result<std::unique_ptr<exec::Runner>> make(const RunnerParts& parts, const std::string& type,
                                           const CppConfig& config) {
  return make_function(parts, type, parts.registry.find(config.name)->second);
}

}  // namespace

std::string log_directory(const Config& config) { return config.state_dir + "/logs"; }

// A registered name that the file does not mention becomes a type of its own, with the defaults of
// each queue, so that a program that embeds lictor needs no file.
Result<Config> with_registered(Config config, const Registry& registry) {
  for (const auto& [queue, type, cpp] : executors_of<CppConfig>(config.queues)) {
    if (registry.contains(cpp.name)) continue;
    std::vector<std::string_view> names;
    for (const auto& [name, registered] : registry) names.push_back(name);
    const std::string near = nearest(cpp.name, names);
    return fail(
        ErrorCode::kInvalid,
        cpp.where + "no C++ executor \"" + cpp.name + "\" is registered in this program" +
            (near.empty() ? "; Worker::add() registers one" : "; did you mean \"" + near + "\"?"));
  }
  for (QueueConfig& queue : config.queues) {
    for (const auto& [name, executor] : registry) {
      if (queue.executors.contains(name)) continue;
      queue.executors.emplace(name, CppConfig{name});
      queue.options.types.emplace(name, queue.defaults);
    }
  }
  return config;
}

void prepare_scratch(const Config& config) {
  std::error_code ignored;  // A file that cannot be removed does no harm: names are never reused.
  std::filesystem::remove_all(scratch_of(config), ignored);
  for (const auto& exec : executors_of<ExecConfig>(config.queues)) {
    if (exec.settings.user) let_jobs_pass(config);
  }
}

Result<void> load_plugins(const Config& config) {
  for (const auto& [queue, type, plugin] : executors_of<PluginConfig>(config.queues)) {
    LICTOR_TRY([[maybe_unused]] const auto found, load(type, plugin));
  }
  return {};
}

Result<runtime::Runners> make_runners(const RunnerParts& parts) {
  runtime::Runners runners;
  for (const auto& [type, executor] : parts.queue.executors) {
    const std::string& name = type;
    LICTOR_TRY(auto runner,
               std::visit([&](const auto& each) { return make(parts, name, each); }, executor));
    runners.emplace(type, std::move(runner));
  }
  return runners;
}

}  // namespace lictor::app
