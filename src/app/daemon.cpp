#include "app/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/admin_server.h"
#include "app/member_entry.h"
#include "app/queue_locks.h"
#include "app/reload.h"
#include "app/state_dir.h"
#include "app/transaction_channel.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/command.h"
#include "exec/lease_board.h"
#include "exec/output_log.h"
#include "exec/process_host.h"
#include "exec/warden.h"
#include "exec/warden_log.h"
#include "net/connections.h"
#include "net/consul_client.h"
#include "net/rate_backoff.h"
#include "net/transport.h"
#include "runtime/log.h"
#include "runtime/loop.h"
#include "runtime/membership.h"
#include "runtime/notifier.h"
#include "runtime/queue_supervisor.h"
#include "runtime/registration.h"

namespace lictor::app {
namespace {

using runtime::Level;
using runtime::log;

constexpr unsigned kAttemptBits = 40;  // more than a queue begins in a daemon's life

void log_pruned(const exec::Pruned& pruned) {
  if (!pruned.error.empty()) {
    log(Level::kWarn, "old output logs could not all be removed", {{"error", pruned.error}});
  }
  if (pruned.removed == 0) return;
  log(Level::kInfo, "old output logs removed",
      {{"files", std::to_string(pruned.removed)},
       {"bytes", std::to_string(pruned.removed_bytes)},
       {"files_kept", std::to_string(pruned.kept)},
       {"bytes_kept", std::to_string(pruned.kept_bytes)}});
}

net::Tuning tuning_of(const Config& config, const std::shared_ptr<net::RateBackoff>& backoff) {
  net::Tuning tuning;
  tuning.max_short_requests = net::kShortConnections;
  tuning.max_urgent_requests = net::kUrgentConnections;
  tuning.max_polls = net::kPollConnections;
  tuning.expected_polls = config.queues.size() * net::kPollsPerQueue;
  tuning.backoff = backoff;
  tuning.on_token_change = log_token_change;  // set on one client, so that it is logged once
  return tuning;
}

net::Tuning tuning_of_commits(const std::shared_ptr<net::RateBackoff>& backoff) {
  net::Tuning tuning;
  tuning.max_short_requests = net::kCommitConnections;
  tuning.max_urgent_requests = tuning.max_polls = 0;
  tuning.backoff = backoff;
  return tuning;
}

// The daemon while it runs: everything on the loop's thread.
class Daemon {
 public:
  Daemon(const Config& config, const Registry& registry, const RunOptions& options,
         runtime::Loop& loop, net::Transport& transport, net::ConsulClient& commits,
         exec::ProcessHost& host, worker::Room& workers, const std::atomic<bool>& warden_died,
         const std::vector<std::string>& admin_urls, Observers& observers)
      : config_(config),
        registry_(registry),
        options_(options),
        loop_(loop),
        transport_(transport),
        commits_(commits),
        host_(host),
        workers_(workers),
        warden_died_(warden_died),
        metrics_(observers.metrics),
        refusals_(observers.refusals),
        member_entry_(config, admin_urls),
        registration_(config.node, LICTOR_VERSION, admin_urls, transport),
        membership_(membership_of(config, member_entry_), loop, transport) {
    observers_ = observers.all(!admin_urls.empty());
  }

  [[nodiscard]] Result<void> make_queues() {
    LICTOR_TRY(auto runners, make_all_runners(config_));
    for (std::size_t i = 0; i < config_.queues.size(); ++i) {
      const QueueConfig& queue = config_.queues[i];
      runtime::QueueDriver::Parts parts;
      parts.options = queue.options;
      parts.options.node = config_.node;
      parts.options.identity = identity_;
      parts.options.first_attempt = (std::uint64_t{i} << kAttemptBits) + 1;
      parts.binding = make_binding(config_, queue);
      parts.binding.leader_value = member_entry_.leader_value(identity_);
      parts.runners = std::move(runners[i]);
      parts.lease_slot = first_slot(i);
      parts.state_dir = config_.state_dir;
      parts.observers = observers_;
      count_types(queue);
      queues_.push_back(std::make_unique<runtime::QueueSupervisor>(
          std::move(parts), queue.weight, loop_, transport_, commits_, host_));
      loop_.add(*queues_.back());
    }
    if (config_.consul.register_service) loop_.add(registration_);
    loop_.add(membership_);
    return {};
  }

  void run() {
    loop_.on_signal([this](int signal) { on_signal(signal); });
    loop_.on_clock_step([this] {
      for (auto& queue : queues_) queue->read_wall_clock();
    });
    Duration interval = std::chrono::seconds{10};
    // Six times in the span, to feed it three times.
    if (notifier_.watchdog() > Duration::zero()) {
      interval = std::min<Duration>(interval, notifier_.watchdog() / 6);
    }
    if (config_.hang_timeout > Duration::zero()) {
      interval = std::min<Duration>(interval, config_.hang_timeout / 4);
    }
    loop_.on_turn(interval, [this] { on_turn(); });
    // Sent also without Consul: neither a boot nor a start of the service waits for another host.
    // The status says what the daemon waits for.
    notifier_.notify("READY=1");
    service_.report(boot_now(), {.waits_for = waits_for()});
    loop_.run();
    host_.board().rest();
    notifier_.notify("STOPPING=1");
    membership_.withdraw();
    if (config_.consul.register_service) registration_.withdraw();
  }

  // The daemon's state. On the loop's thread.
  [[nodiscard]] admin::Status status() const {
    admin::Status status;
    status.node = config_.node;
    status.version = LICTOR_VERSION;
    status.pid = getpid();
    status.uptime = boot_now() - started_at_;
    status.since = started_;
    status.stopping = stopping_;
    status.waits_for = waits_for();
    const auto workers = workers_.all_figures();
    for (const auto& queue : queues_) {
      status.queues.push_back(
          status_of(*queue, stopping_, types_.at(queue->name()), *active_logs_));
      status.queues.back().workers = workers_of(workers, queue->name());
    }
    return status;
  }

  [[nodiscard]] std::optional<std::string> why(const std::string& queue_name,
                                               const std::string& id) const {
    for (const auto& queue : queues_) {
      if (queue->name() != queue_name || queue->driver() == nullptr) continue;
      return queue->driver()->why(boot_now(), id);
    }
    return std::nullopt;
  }

  [[nodiscard]] const std::shared_ptr<exec::ActiveLogs>& active_logs() const {
    return active_logs_;
  }

  [[nodiscard]] bool reloading() const { return reloader_.busy(); }

  [[nodiscard]] std::size_t running() const {
    std::size_t jobs = 0;
    for (const auto& queue : queues_) {
      if (queue->driver() != nullptr) jobs += queue->driver()->running();
    }
    return jobs;
  }

 private:
  void on_signal(int signal) {
    if (signal == SIGHUP) {
      notifier_.notify("RELOADING=1");
      log(Level::kInfo, "SIGHUP: reading the configuration again");
      return reloader_.request();
    }
    // timeout(1) and some supervisors signal the process and its group: that counts as one signal.
    const Instant last = std::exchange(signalled_at_, boot_now());
    if (stopping_ && signalled_at_ - last < std::chrono::seconds{1}) return;
    if (stopping_) {
      // The sender of the second signal doesn't want to wait.
      log(Level::kWarn, "stopping at once: the warden kills the jobs and releases the lock");
      std::_Exit(128 + signal);
    }
    log(Level::kInfo, "stopping: running jobs may finish; a signal after a second stops at once",
        {{"jobs", running() != 0 ? std::to_string(running()) : ""}});
    request_stop();
  }

  // Makes the runners of each queue from `config`.
  Result<std::vector<runtime::Runners>> make_all_runners(const Config& config) const {
    std::vector<runtime::Runners> all;
    for (const QueueConfig& queue : config_.queues) {
      LICTOR_TRY(auto runners,
                 make_runners({config, *config.find(queue.options.queue), first_slot(all.size()),
                               host_, workers_, registry_, active_logs_}));
      all.push_back(std::move(runners));
    }
    return all;
  }

  struct Loaded {
    Config config;                          // with the settings that need a restart as they are
    std::vector<runtime::Runners> runners;  // of each queue
    std::string waits;                      // what needs a restart
  };

  // On the reloader's thread: reads only members that do not change while the daemon runs.
  Result<Loaded> load() const {
    LICTOR_TRY(auto next, options_.reload());
    std::string waits = fmt::format("{}", fmt::join(hold_back(config_, next), ", "));
    LICTOR_TRY(auto runners, make_all_runners(next));
    return Loaded{std::move(next), std::move(runners), std::move(waits)};
  }

  Reloader::Apply load_to_apply() {
    std::shared_ptr<Result<Loaded>> loaded;
    try {
      loaded = std::make_shared<Result<Loaded>>(load());
    } catch (const std::exception& error) {  // no memory, or no thread for an executor
      loaded = std::make_shared<Result<Loaded>>(fail(ErrorCode::kFailed, error.what()));
    }
    return [this, loaded] { apply(*loaded); };
  }

  // A file with an error changes nothing.
  void apply(Result<Loaded>& loaded) {
    if (!loaded) {
      member_entry_.reload_refused(loaded.error().message);
      membership_.set_value(member_entry_.member_value());
      return log(Level::kError, "configuration not reloaded; keeping the old one",
                 {{"error", loaded.error().message}});
    }
    const Config& next = loaded->config;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const QueueConfig& queue = *next.find(queues_[i]->name());
      count_types(queue);
      queues_[i]->reconfigure(queue.options, queue.weight, std::move(loaded->runners[i]));
    }
    runtime::set_log_level(next.log.level);
    const std::string changed = member_entry_.reloaded(next);
    restart_for_ = loaded->waits;
    if (!restart_for_.empty())
      member_entry_.reload_refused("a restart is needed for " + restart_for_);
    membership_.set_value(member_entry_.member_value());
    for (const std::string& warning : next.warnings) log(Level::kWarn, warning);
    log(Level::kInfo, "configuration reloaded",
        {{"file", next.file},
         {"changes", changed.empty() ? "nothing that all hosts share" : changed}});
    if (restart_for_.empty()) return;
    log(Level::kWarn, "some changes of the configuration wait for a restart",
        {{"file", next.file}, {"settings", restart_for_}});
  }

  void count_types(const QueueConfig& queue) {
    std::set<std::string> types;
    for (const auto& [type, policy] : queue.options.types) types.insert(type);
    metrics_.set_types(queue.options.queue, types);
    auto& served = types_[queue.options.queue];
    served.assign(types.begin(), types.end());
    if (queue.options.any_type) served.emplace_back("*");
  }

  void request_stop() {
    stopping_ = true;
    for (auto& queue : queues_) queue->request_stop();
  }

  // Why this daemon cannot work, or why its stop is not over; empty: it works.
  [[nodiscard]] std::string waits_for() const {
    if (stopping_) return stop_waits_for(queues_);
    if (!membership_.joined()) {
      return "waiting for Consul" +
             (membership_.trouble().empty() ? "" : ": " + membership_.trouble());
    }
    for (const auto& queue : queues_) {
      if (std::string reason = queue->waits_for(); !reason.empty()) {
        return "waiting for queue " + queue->name() + ": " + reason;
      }
    }
    return refusals_.first(boot_now());
  }

  // Writes this host's entry among the members again when it has something new to say.
  void publish_entry() {
    bool is_new = false;
    for (const auto& queue : queues_) {
      is_new |= member_entry_.set_desired_partitions(queue->name(), queue->desired_partitions());
      const std::uint64_t last = queue->given_up();
      if (last != 0) {
        is_new |= member_entry_.set_given_up(queue->name(), core::claim_nonce(identity_, last));
      }
    }
    if (is_new) membership_.set_value(member_entry_.member_value());
  }

  void on_turn() {
    const Instant now = boot_now();
    const bool host_responds = host_.responds(now);
    if (host_responds) {
      notifier_.alive(now);
      host_.board().beat();
    }
    if (std::exchange(host_responds_, host_responds) && !host_responds) {
      log(Level::kError,
          "no program starts or ends: what reads their ends waits for the disk of state_dir; the "
          "warden kills this daemon after hang_timeout if it leads");
    }
    std::vector<std::string> leading;
    bool stopped = true;
    bool drained = true;
    for (const auto& queue : queues_) {
      const runtime::QueueDriver* driver = queue->driver();
      if (driver != nullptr && driver->leading(now)) leading.push_back(queue->name());
      stopped = stopped && queue->stopped();
      drained = drained && driver != nullptr && driver->drained();
    }
    publish_entry();
    service_.report(now, {waits_for(), leading, restart_for_, stopping_});
    registration_.set_leading(std::move(leading));
    if (stopped) return loop_.stop();
    if (stopping_) return;
    if (warden_died_) {
      log(Level::kError,
          "the warden died, and its jobs were killed; stopping, to be restarted by systemd");
      request_stop();
    } else if (options_.once && drained) {
      log(Level::kInfo, "no due tasks are left");
      request_stop();
    }
  }

  const Config& config_;
  const Registry& registry_;
  const RunOptions options_;
  runtime::Loop& loop_;
  net::Transport& transport_;
  net::ConsulClient& commits_;
  exec::ProcessHost& host_;
  worker::Room& workers_;
  const std::atomic<bool>& warden_died_;  // the jobs are ended, and none can be started
  admin::Metrics& metrics_;
  const runtime::Refusals& refusals_;
  std::vector<runtime::Observer*> observers_;
  const std::string identity_ = Random{random_seed()}.hex();  // of this process, in its claims
  MemberEntry member_entry_;
  const std::shared_ptr<exec::ActiveLogs> active_logs_ = std::make_shared<exec::ActiveLogs>();
  const Instant started_at_ = boot_now();
  const WallTime started_ = wall_now();
  runtime::Registration registration_;
  runtime::Membership membership_;
  std::vector<std::unique_ptr<runtime::QueueSupervisor>> queues_;
  std::map<std::string, std::vector<std::string>> types_;  // types with an executor, by queue
  bool host_responds_ = true;
  runtime::Notifier notifier_;
  ServiceStatus service_{notifier_};
  std::string restart_for_;  // settings of the file that this daemon has not taken
  bool stopping_ = false;
  Instant signalled_at_{};
  Reloader reloader_{loop_, [this] { return load_to_apply(); },
                     [this] { notifier_.notify("READY=1"); }};
};

Result<int> start_and_run(const Config& config, const Registry& registry,
                          const RunOptions& options) {
  LICTOR_TRY(const auto lock, lock_state_dir(config.state_dir, longest_lock_release(config)));
  if (const std::string exposed = state_dir_exposure(config.state_dir); !exposed.empty()) {
    log(Level::kWarn, exposed);
  }
  prepare_scratch(config);
  const exec::LeaseSlot first_worker = first_slot(config.queues.size());
  LICTOR_TRY(auto board, exec::LeaseBoard::create(first_worker + worker::kMostProcesses));
  exec::emits_json = config.log.format == LogFormat::kJson;
  exec::emits_journal = !exec::emits_json && runtime::stderr_is_journal();
  // The warden is forked before there is any thread.
  LICTOR_TRY(auto warden,
             exec::start_warden(board, {lock.get(), config.hang_timeout, release_locks(config)}));
  if (auto noted = note_run(config.state_dir, lock, warden.run_id); !noted) {
    return tl::unexpected(std::move(noted.error()));
  }
  const std::string no_cgroups = warden.cgroups.absence();
  LICTOR_TRY(const auto loop, runtime::Loop::create());

  // Called on the threads of the host and of the log writers, which outlive the daemon.
  std::atomic<bool> warden_died = false;
  exec::ProcessHost::Hooks hooks;
  hooks.on_warning = [](const std::string& warning) { log(Level::kWarn, warning); };
  hooks.on_warden_death = [&warden_died, &loop] {
    warden_died = true;
    loop->wake();
  };
  LICTOR_TRY(const auto host, exec::ProcessHost::create(std::move(warden), board, hooks));
  worker::Room workers{*host, first_worker};
  Observers observers;  // must outlive the transports, whose threads call them
  const auto backoff = std::make_shared<net::RateBackoff>(Random{random_seed()});
  LICTOR_TRY(const auto transport,
             net::Transport::open(config.consul.options, tuning_of(config, backoff)));
  LICTOR_TRY(auto consul_client,
             net::ConsulClient::open(config.consul.options, tuning_of_commits(backoff)));
  TransactionChannel commits{std::move(consul_client), *loop};

  LICTOR_TRY(auto admin, AdminServer::listen(config));
  if (options.on_listen) {
    if (auto shown = options.on_listen(admin->urls()); !shown) {
      return tl::unexpected(std::move(shown.error()));
    }
  }
  if (!no_cgroups.empty()) {
    log(Level::kInfo,
        "attempts get no cgroup; a process that leaves its session and clears its environment may "
        "outlive its attempt",
        {{"reason", no_cgroups}});
  }
  Daemon daemon{config, registry, options,     *loop,         *transport, commits.consul_client(),
                *host,  workers,  warden_died, admin->urls(), observers};
  if (auto made = daemon.make_queues(); !made) return tl::unexpected(std::move(made.error()));
  log(Level::kInfo, "lictor runs",
      {{"version", LICTOR_VERSION},
       {"node", config.node},
       {"queues", std::to_string(config.queues.size())},
       {"consul", config.consul.options.addresses.front()}});
  const std::jthread pruner =
      exec::start_log_pruner(log_directory(config), config.logs, daemon.active_logs(), log_pruned);
  auto served = admin->serve(
      {*loop, [&daemon] { return daemon.status(); },
       [&daemon](const std::string& queue, const std::string& id) { return daemon.why(queue, id); },
       daemon.active_logs(), observers, backoff});
  if (!served) return tl::unexpected(std::move(served.error()));
  daemon.run();
  admin.reset();

  if (daemon.running() != 0) {
    // A C++ executor does not return; its thread can only end with the process.
    log(Level::kError,
        "jobs ignored SIGTERM and are killed with this daemon; its warden releases the lock after "
        "that",
        {{"jobs", std::to_string(daemon.running())}});
    std::_Exit(cli::kFailed);
  }
  log(Level::kInfo, "stopped");
  const int code = warden_died ? cli::kFailed : cli::kDone;
  if (daemon.reloading()) std::_Exit(code);  // Nothing ends a thread that reads a dead file system.
  return code;
}

}  // namespace

int run_daemon(const Config& config, const Registry& registry, const RunOptions& options) {
  raise_descriptor_limit();
  runtime::set_up_log(config.log.format, config.log.level);
  for (const std::string& warning : config.warnings) log(Level::kWarn, warning);
  if (const std::string few = descriptor_shortage(config, most_descriptors()); !few.empty()) {
    log(Level::kWarn, few);
  }
  signal(SIGPIPE, SIG_IGN);
  const auto code = start_and_run(config, registry, options);
  if (code) return *code;
  log(Level::kError, code.error().message);
  return cli::exit_code(code.error().code);
}

}  // namespace lictor::app
