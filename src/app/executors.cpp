#include "app/executors.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/in_process.h"
#include "base/text.h"
#include "base/try.h"
#include "exec/function_runner.h"
#include "exec/http_runner.h"
#include "exec/noop_runner.h"
#include "exec/plugin.h"
#include "exec/process_runner.h"

namespace lictor::app {
namespace {

// What the runners of one queue have in common.
struct Common {
  const Config& config;
  const QueueConfig& queue;
  exec::LeaseSlot slot;
  exec::ProcessHost& host;
  const Registry& registry;
  const std::shared_ptr<exec::ActiveLogs>& active_logs;
};

// Where jobs leave what LICTOR_COMMIT and LICTOR_RESULT name.
std::string scratch_of(const Config& config) { return config.state_dir + "/scratch"; }

const core::TypePolicy& policy_of(const Common& common, const std::string& type) {
  const auto& types = common.queue.options.types;
  const auto it = types.find(type);
  return it != types.end() ? it->second : *common.queue.options.any_type;
}

bool ends_with_lease(const Common& common, const std::string& type) {
  return policy_of(common, type).on_lease_lost == core::OnLeaseLost::kStop;
}

// The lease that jobs inside the daemon end with.
exec::LeaseSlot lease_of(const Common& common, const std::string& type) {
  return ends_with_lease(common, type) ? common.slot : exec::kNoLease;
}

// Jobs of other users come to their part of the scratch folder through state_dir.
void let_jobs_pass(const Config& config) {
  struct stat status {};
  if (stat(config.state_dir.c_str(), &status) != 0) return;
  chmod(config.state_dir.c_str(), (status.st_mode & 07777U) | S_IXOTH);
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           ExecConfig options) {
  if (options.user) let_jobs_pass(common.config);
  options.slot = common.slot;
  options.ends_with_lease = ends_with_lease(common, type);
  options.grace = common.queue.options.kill_grace;
  options.log_directory = log_directory(common.config);
  options.scratch_directory = scratch_of(common.config);
  options.active_logs = common.active_logs;
  LICTOR_TRY(auto runner, exec::ProcessRunner::create(common.host, std::move(options)));
  return std::unique_ptr<exec::Runner>{std::move(runner)};
}

Result<std::unique_ptr<exec::Runner>> make(const Common&, const std::string&,
                                           const NoopConfig& config) {
  return std::make_unique<exec::NoopRunner>(config.sleep);
}

std::string place_of(const QueueConfig& queue, const std::string& type) {
  return "queue \"" + queue.options.queue + "\": executor \"" + type + "\": ";
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           const HttpConfig& config) {
  LICTOR_TRY(auto runner,
             exec::HttpRunner::create(common.host.board(), config, lease_of(common, type)));
  return std::unique_ptr<exec::Runner>{std::move(runner)};
}

std::unique_ptr<exec::Runner> make_function(const Common& common, const std::string& type,
                                            std::shared_ptr<Executor> executor) {
  return std::make_unique<exec::FunctionRunner>(
      [executor = std::move(executor)](const exec::Attempt& attempt, const exec::JobTools& tools) {
        return run_in_process(*executor, attempt, tools);
      },
      common.host.board(), common.queue.options.concurrency, lease_of(common, type));
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           const PluginConfig& config) {
  auto executor = exec::plugin_executor(config.file, config.executor, type);
  if (!executor) {
    return fail(executor.error().code, place_of(common.queue, type) + executor.error().message);
  }
  return make_function(common, type, *std::move(executor));
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           const CppConfig& config) {
  return make_function(common, type, common.registry.find(config.name)->second);
}

}  // namespace

std::string log_directory(const Config& config) { return config.state_dir + "/logs"; }

Result<void> add_registered(Config& config, const Registry& registry) {
  for (QueueConfig& queue : config.queues) {
    for (const auto& [type, executor] : queue.executors) {
      const auto* cpp = std::get_if<CppConfig>(&executor);
      if (cpp == nullptr || registry.contains(cpp->name)) continue;
      std::vector<std::string_view> names;
      for (const auto& [name, registered] : registry) names.push_back(name);
      const std::string near = nearest(cpp->name, names);
      return fail(ErrorCode::kInvalid, place_of(queue, type) + "no C++ executor \"" + cpp->name +
                                           "\" is registered in this program" +
                                           (near.empty() ? "; Worker::add() registers one"
                                                         : "; did you mean \"" + near + "\"?"));
    }
    for (const auto& [name, executor] : registry) {
      if (queue.executors.contains(name)) continue;
      queue.executors.emplace(name, CppConfig{name});
      queue.options.types.emplace(name, queue.defaults);
    }
  }
  return {};
}

void prepare_scratch(const Config& config) {
  std::error_code ignored;  // What cannot be removed is not in the way: names do not come again.
  std::filesystem::remove_all(scratch_of(config), ignored);
  for (const QueueConfig& queue : config.queues) {
    for (const auto& [type, executor] : queue.executors) {
      const auto* exec = std::get_if<ExecConfig>(&executor);
      if (exec != nullptr && exec->user) let_jobs_pass(config);
    }
  }
}

Result<runtime::Runners> make_runners(const Config& config, const QueueConfig& queue,
                                      exec::LeaseSlot slot, exec::ProcessHost& host,
                                      const Registry& registry,
                                      const std::shared_ptr<exec::ActiveLogs>& active_logs) {
  const Common common{config, queue, slot, host, registry, active_logs};
  runtime::Runners runners;
  for (const auto& [type, executor] : queue.executors) {
    auto runner =
        std::visit([&, &type = type](const auto& e) { return make(common, type, e); }, executor);
    if (!runner) return tl::unexpected(std::move(runner.error()));
    runners.emplace(type, std::move(*runner));
  }
  return runners;
}

}  // namespace lictor::app
