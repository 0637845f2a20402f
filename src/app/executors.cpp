#include "app/executors.h"

#include <sys/resource.h>

#include <utility>

#include "base/text.h"
#include "exec/function_runner.h"
#include "exec/noop_runner.h"
#include "exec/process_runner.h"

namespace lictor::app {
namespace {

using nlohmann::json;

// What the runners of one queue have in common.
struct Common {
  const Config& config;
  const QueueConfig& queue;
  exec::LeaseSlot slot;
  exec::ProcessHost& host;
  const Registry& registry;
};

const core::TypePolicy& policy_of(const Common& common, const std::string& type) {
  const auto& types = common.queue.options.types;
  const auto it = types.find(type);
  return it != types.end() ? it->second : *common.queue.options.any_type;
}

bool ends_with_lease(const Common& common, const std::string& type) {
  return policy_of(common, type).on_lease_lost == core::OnLeaseLost::kStop;
}

std::vector<exec::Limit> to_limits(const ExecLimits& limits) {
  std::vector<exec::Limit> list;
  const auto add = [&](int resource, const std::optional<std::uint64_t>& value) {
    if (value) list.push_back({resource, *value, *value});
  };
  add(RLIMIT_NOFILE, limits.open_files);
  add(RLIMIT_NPROC, limits.processes);
  add(RLIMIT_AS, limits.memory_bytes);
  add(RLIMIT_FSIZE, limits.file_size_bytes);
  add(RLIMIT_CORE, limits.core_bytes);
  if (limits.cpu_time) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*limits.cpu_time).count();
    add(RLIMIT_CPU, static_cast<std::uint64_t>(seconds));
  }
  return list;
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           const ExecConfig& config) {
  exec::ProcessOptions options;
  options.argv = config.argv;
  options.environment.assign(config.env.begin(), config.env.end());
  options.directory = config.cwd;
  if (config.user) {
    const ExecUser& user = *config.user;
    options.user = exec::User{user.name, user.home, "/bin/sh", {user.uid, user.gid, user.groups}};
  }
  options.limits = to_limits(config.limits);
  options.slot = common.slot;
  options.ends_with_lease = ends_with_lease(common, type);
  options.grace = common.queue.options.kill_grace;
  options.log_directory = common.config.state_dir + "/logs";
  options.log_cap = config.output_limit_bytes;
  auto runner = exec::ProcessRunner::create(common.host, std::move(options));
  if (!runner) return tl::unexpected(std::move(runner.error()));
  return std::unique_ptr<exec::Runner>{std::move(*runner)};
}

Result<std::unique_ptr<exec::Runner>> make(const Common&, const std::string&,
                                           const NoopConfig& config) {
  return std::make_unique<exec::NoopRunner>(config.sleep);
}

exec::Exit run_in_process(Executor& executor, const exec::Attempt& attempt, std::stop_token stop,
                          Instant deadline) {
  Task task{attempt.task_id, attempt.task_key, attempt.task_type, attempt.queue, {},
            *attempt.record};
  const json record = json::parse(task.record, nullptr, false);
  if (record.is_object() && record.contains("taskPara")) task.parameters = record["taskPara"];
  const Context context{std::move(task), attempt.number, attempt.fencing_token, deadline, stop};
  const JobResult result = executor.run(context);
  exec::Exit exit;
  exit.attempt = attempt.id;
  exit.error = result.error();
  switch (result.status()) {
    case JobResult::Status::kDone:
      exit.ending = exec::Ending::kDone;
      break;
    case JobResult::Status::kPermanent:
      exit.ending = exec::Ending::kPermanent;
      break;
    case JobResult::Status::kRetry:
      exit.ending = stop.stop_requested() ? exec::Ending::kStopped : exec::Ending::kRetry;
      break;
  }
  return exit;
}

Result<std::unique_ptr<exec::Runner>> make(const Common& common, const std::string& type,
                                           const CppConfig& config) {
  const auto it = common.registry.find(config.name);
  if (it == common.registry.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, executor] : common.registry) names.push_back(name);
    const std::string near = nearest(config.name, names);
    return fail(
        ErrorCode::kInvalid,
        "queue \"" + common.queue.options.queue + "\": executor \"" + type +
            "\": no C++ executor \"" + config.name + "\" is registered in this program" +
            (near.empty() ? "; Worker::add() registers one" : "; did you mean \"" + near + "\"?"));
  }
  exec::FunctionRunner::Options options;
  options.threads = common.queue.options.concurrency;
  options.slot = common.slot;
  options.ends_with_lease = ends_with_lease(common, type);
  return std::make_unique<exec::FunctionRunner>(
      [executor = it->second](const exec::Attempt& attempt, std::stop_token stop,
                              Instant deadline) {
        return run_in_process(*executor, attempt, std::move(stop), deadline);
      },
      common.host.board(), options);
}

}  // namespace

void add_registered(Config& config, const Registry& registry) {
  for (QueueConfig& queue : config.queues) {
    for (const auto& [name, executor] : registry) {
      if (queue.executors.contains(name)) continue;
      queue.executors.emplace(name, CppConfig{name});
      queue.options.types.emplace(name, queue.defaults);
    }
  }
}

Result<runtime::Runners> make_runners(const Config& config, const QueueConfig& queue,
                                      exec::LeaseSlot slot, exec::ProcessHost& host,
                                      const Registry& registry) {
  const Common common{config, queue, slot, host, registry};
  runtime::Runners runners;
  for (const auto& [type, executor] : queue.executors) {
    auto runner = std::visit([&](const auto& e) { return make(common, type, e); }, executor);
    if (!runner) return tl::unexpected(std::move(runner.error()));
    runners.emplace(type, std::move(*runner));
  }
  return runners;
}

}  // namespace lictor::app
