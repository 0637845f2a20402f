// lictor try: runs one attempt of a task by the executor of its type, as the daemon would, on this
// host and without Consul, in a folder of its own. Prints its output and how the task would end.
// Writes nothing to Consul.
//
//   record --> warden, host, worker room --> the runner of the type --> one attempt --> its end
//                                                      |
//                      output: new bytes of the log files, every 50 ms, and once more at the end
//
// The parts are the daemon's own, with two exceptions. Without a lock there is no lease, so the
// slot of the runner gets a deadline a year ahead. Without a core nothing is decided about the
// task: verdict_of() says what the core would decide after this end.

#include "base/try.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "app/queue_locks.h"
#include "app/scratch_folder.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/json_output.h"
#include "cli/new_task.h"
#include "cli/process.h"
#include "core/commits/op_cost.h"
#include "core/options.h"
#include "exec/init.h"
#include "exec/lease_board.h"
#include "exec/output_log.h"
#include "exec/warden.h"
#include "runtime/log.h"
#include "runtime/queue_driver.h"
#include "wire/transaction_plan.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;
using runtime::to_core;

constexpr std::uint64_t kToken = 1;  // no claim gives one here
constexpr Duration kLook = 50ms;     // between two looks at the output
constexpr Duration kYear = 24h * 365;
constexpr Duration kKillTakes = 5s;  // at most, of a program

// The executor of `type`, alone in its queue. Errors: kNotFound.
Result<QueueConfig> only_executor(const QueueConfig& queue, const std::string& type) {
  const auto exact = queue.executors.find(type);
  const auto found = exact != queue.executors.end() ? exact : queue.executors.find("*");
  if (found == queue.executors.end()) {
    std::vector<std::string_view> types;
    for (const auto& [name, executor] : queue.executors) types.push_back(name);
    const std::string near = nearest(type, types);
    return fail(ErrorCode::kNotFound,
                fmt::format("queue \"{}\" has no executor for the type \"{}\"{}; it has {}",
                            queue.options.queue, excerpt(type),
                            near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near),
                            types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
  }
  QueueConfig alone = queue;
  alone.executors = {{found->first, found->second}};
  return alone;
}

// The new output in a folder's logs since the last call: the attempt's log, and the logs of a
// worker's processes.
class Output {
 public:
  explicit Output(std::string folder) : folder_(std::move(folder)) {}

  std::string more() {
    constexpr std::size_t kAtOnce = 65536;
    std::error_code none;  // nothing is written yet
    for (const auto& entry : std::filesystem::directory_iterator{folder_, none}) {
      read_.try_emplace(entry.path().string(), 0);
    }
    std::string all;
    for (auto& [path, read] : read_) {
      while (true) {
        const auto part = exec::read_log(path, read, kAtOnce);
        if (!part || part->empty()) break;
        read += part->size();
        all += *part;
      }
    }
    return all;
  }

 private:
  std::string folder_;
  std::map<std::string, std::uint64_t> read_;
};

// Says what the core would do with the task after such an end.
std::string verdict_of(const core::JobExited& end, const std::string& stopped_by,
                       const core::TypePolicy& policy) {
  using exec::Ending;
  const std::string why = end.error.empty() ? "" : ": " + end.error;
  switch (end.ending) {
    case Ending::kDone:
      return "done";
    case Ending::kPermanent:
      return "failed for good, a dead letter at once" + why;
    case Ending::kNotStarted:
      if (!stopped_by.empty()) return stopped_by;
      return "not started on this host; the task would wait" + why;
    case Ending::kStopped:
    case Ending::kLost:
      return stopped_by.empty() ? "stopped" + why : stopped_by;
    case Ending::kRetry:
      break;
  }
  if (!stopped_by.empty()) return stopped_by + why;
  std::string text = fmt::format(
      "failed; {}{}",
      policy.max_attempts > 1 ? fmt::format("tried again, {} attempts in all", policy.max_attempts)
                              : "a dead letter, since max_attempts is 1",
      why);
  if (end.retry_after) text += "; not before " + format_duration(*end.retry_after);
  return text;
}

// Whether the writes fit into a transaction, as the core checks before it commits them.
bool fit(const std::vector<core::KvWrite>& writes, const wire::TransactionPlan& plan,
         const std::string& task_key, const core::Cost& most) {
  core::Cost cost = plan.fence(1, 1);
  cost += plan.cost(core::FinishOp{task_key, 0, writes, nullptr});
  return cost.operations <= most.operations && cost.bytes <= most.bytes;
}

struct Trial {
  exec::Exit exit;
  std::string stopped_by;  // "timed out after 5s"; empty: it ended by itself
  bool goes_on = false;    // a job in C++ that does not heed its stop token
  std::string output;      // with `json`; else it is printed
  Duration took{};
};

void show(Output& output, Trial& trial, cli::Console* console) {
  const std::string more = output.more();
  if (console == nullptr) {
    trial.output += more;
  } else if (!more.empty()) {
    console->print_bytes(more);
    (void)console->flush();
  }
}

// Waits for the end, and passes output on as it comes. Time-out and Ctrl-C both stop the attempt
// once, as the daemon would; the runner ends it by force after `grace`, unless it is a thread.
Trial carry_out(exec::Runner& runner, exec::Attempt attempt, const core::TypePolicy& policy,
                Duration grace, Output& output, cli::Console* console) {
  Trial trial;
  const AttemptId id = attempt.id;
  const Instant begun = boot_now();
  const bool limited = policy.timeout > Duration::zero();
  const Instant deadline = limited ? begun + policy.timeout : Instant::max();
  const auto promise = std::make_shared<std::promise<exec::Exit>>();
  auto ended = promise->get_future();
  const auto started = runner.start(std::move(attempt), deadline, [promise](exec::Exit exit) {
    promise->set_value(std::move(exit));
  });
  if (!started) {
    trial.exit = exec::ended(id, exec::Ending::kNotStarted, started.error().message);
    return trial;
  }
  Instant give_up = Instant::max();
  while (ended.wait_for(kLook) != std::future_status::ready) {
    show(output, trial, console);
    if (boot_now() >= give_up) {
      trial.goes_on = true;
      trial.stopped_by += ", and goes on after kill_grace: a daemon would keep its slot taken";
      trial.exit = exec::ended(id, exec::Ending::kStopped, {});
      trial.took = boot_now() - begun;
      return trial;
    }
    const bool late = boot_now() >= deadline;
    if (!trial.stopped_by.empty() || (!late && !cli::interrupted())) continue;
    trial.stopped_by = late ? "timed out after " + format_duration(policy.timeout) : "interrupted";
    runner.stop(id, std::chrono::duration_cast<std::chrono::milliseconds>(grace));
    give_up = boot_now() + grace + kKillTakes;
  }
  trial.exit = ended.get();
  trial.took = boot_now() - begun;
  return trial;
}

int print_trial(cli::Console& console, const std::string& type, const Trial& trial,
                const core::JobExited& end, const core::TypePolicy& policy,
                const ordered_json& writes, bool json) {
  const std::string verdict = verdict_of(end, trial.stopped_by, policy);
  const bool done = end.ending == exec::Ending::kDone;
  const auto took = std::chrono::floor<std::chrono::milliseconds>(trial.took);
  if (json) {
    console.print(cli::json_document(
        {{"type", type},
         {"done", done},
         {"ending", verdict},
         {"error", cli::text_or_null(end.error)},
         {"took_ms", took.count()},
         {"result", end.result.empty() ? ordered_json{} : ordered_json::parse(end.result)},
         {"result_fault", cli::text_or_null(end.result_fault)},
         {"writes", writes},
         {"output", to_utf8(trial.output)}}));
    return done ? cli::kDone : cli::kFailed;
  }
  console.note(fmt::format("{} (it took {})", verdict, format_duration(took)));
  if (!done) return cli::kFailed;
  if (!end.result.empty()) {
    console.note_lines("result:\n" + cli::record_text(end.result) + '\n');
  }
  if (!end.result_fault.empty()) {
    console.report_error("the result is left out: " + end.result_fault);
  }
  if (!writes.is_null()) {
    console.note_lines("writes to Consul KV, which a trial does not make:\n" +
                       cli::json_document(writes));
  }
  return cli::kDone;
}

// Forks, so no thread may exist yet. Errors: kNotFound, no executor; kInvalid; kFailed.
Result<int> run_try(const Program& program, const cli::TaskText& task, Config config,
                    const std::string& queue_name) {
  cli::Console& console = program.console;
  const QueueConfig* queue = config.find(queue_name);
  if (queue == nullptr) {
    return fail(ErrorCode::kInvalid,
                "--queue: the configuration has no queue \"" + excerpt(queue_name) + '"');
  }
  const std::string& type = task.type;  // the executor's, or one for "*"
  client::TaskIds ids{random_seed()};
  LICTOR_TRY(const auto record, cli::new_task(task, wall_now(), ids));
  LICTOR_TRY(const QueueConfig alone, only_executor(*queue, type));
  core::TypePolicy policy = *alone.options.policy_of(type);
  if (task.timeout) policy.timeout = *task.timeout;
  LICTOR_TRY(const auto folder, ScratchFolder::make("lictor-try"));
  config.state_dir = folder->path();
  runtime::set_up_log(runtime::LogStyle::kText, runtime::Level::kError);
  prepare_scratch(config);
  const exec::LeaseSlot first_worker = first_slot(config.queues.size());
  LICTOR_TRY(auto board, exec::LeaseBoard::create(first_worker + worker::kMostProcesses));
  // The warden is forked before there is any thread.
  LICTOR_TRY(auto warden, exec::start_warden(board, {}));
  cli::catch_signals(cli::SecondSignal::kEndsAtOnce);
  exec::ProcessHost::Hooks hooks;
  hooks.on_warning = [&console](const std::string& warning) { console.report_error(warning); };
  LICTOR_TRY(const auto host, exec::ProcessHost::create(std::move(warden), board, hooks));
  std::optional<worker::Room> workers{std::in_place, *host, first_worker};
  const auto logs = std::make_shared<exec::ActiveLogs>();
  LICTOR_TRY(auto runners,
             make_runners({config, alone, 0, *host, *workers, program.registry, logs}));
  host->set_lease(0, boot_now() + kYear, alone.options.kill_grace);

  exec::Attempt attempt;
  attempt.id = AttemptId{1};
  attempt.queue = queue_name;
  attempt.task_id = record.id;
  attempt.task_key = alone.layout.task_key(record.id);
  attempt.key_id = record.id;
  attempt.task_type = type;
  attempt.fencing_token = kToken;
  attempt.record = std::make_shared<const std::string>(record.record);
  const std::string key = attempt.task_key;
  const std::string log = exec::output_log_stem(log_directory(config), queue_name, record.id);
  Output output{std::filesystem::path{log}.parent_path().string()};
  cli::Console* const shown = program.json ? nullptr : &console;
  Trial trial = carry_out(*runners.begin()->second, std::move(attempt), policy,
                          alone.options.kill_grace, output, shown);
  if (trial.goes_on) {  // no end of this process is orderly while its thread runs
    print_trial(console, type, trial, to_core({}, key, trial.exit), policy, {}, program.json);
    static_cast<void>(console.flush());
    std::error_code ignored;
    std::filesystem::remove_all(folder->path(), ignored);
    std::_Exit(cli::kFailed);
  }
  // A worker may write more until its process ends.
  runners.clear();
  workers.reset();
  show(output, trial, shown);
  core::JobExited end = to_core(make_binding(config, alone).reserved, key, trial.exit);
  constexpr core::Cost kMost{limits::kMostOperations, limits::kTransactionBytes};
  if (!fit(end.writes, wire::TransactionPlan{alone.layout, config.node}, key, kMost)) {
    end.ending = exec::Ending::kRetry;
    end.error = core::writes_do_not_fit(end.writes.size(), kMost);
  }
  ordered_json writes;
  if (end.ending == exec::Ending::kDone && trial.exit.commit) {
    writes = ordered_json::parse(*trial.exit.commit);
  }
  return print_trial(console, type, trial, end, policy, writes, program.json);
}

Result<int> try_task(const Program& program, const cli::TaskText& task) {
  LoadRequest request = program.load_request(program.daemon_mode());
  request.refuse_untrusted = false;  // for trying out, with files of one's own
  request.only_type = task.type;
  LICTOR_TRY(auto config, load_config(request));
  LICTOR_TRY(config, with_registered(std::move(config), program.registry));
  for (const std::string& warning : config.warnings) program.console.report_error(warning);
  LICTOR_TRY(const auto target, target_of(config, program.queue));
  exec::leave_pid_1();
  return run_try(program, task, std::move(config), target.queue);
}

}  // namespace

void add_try(cli::Commands& to, Program& program) {
  auto [command, task] = to.add_alone<cli::TaskText>(
      "try", "Run one task by its executor, here and now, without Consul",
      R"(Starts what the configuration gives to the type, as the daemon would, with the same user, limits,
environment and timeout, and prints its output and what would have become of the task. Nothing is
written to Consul, and no daemon is needed. An http executor sends its request to the real receiver.
The exit code is 0 if the task would be done, 3 if the type has no executor, else 1.

Examples:
  lictor try Invoice --para order=A-17
  lictor try CreateTableSpace --config ./lictor.json --para instanceId=db7 --para initSize:=8000
  lictor try Report --json | jq .result
)",
      [&program](const cli::TaskText& read) { return try_task(program, read); });
  command.argument("TYPE", task.type, "The kind of task; picks the executor").required();
  command.text("--id", task.id, "The task's id (default: a new one)", "ID");
  cli::add_parameters(command, task);
  command.duration("--timeout", task.timeout,
                   "End the attempt after this (default: the executor's setting)");
  command.then([&task = task] { return cli::read_parameters(task); });
}

}  // namespace lictor::app
