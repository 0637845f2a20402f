#include "app/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>
#include <systemd/sd-daemon.h>

#include "app/executors.h"
#include "app/layout.h"
#include "app/state_dir.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/time_text.h"
#include "exec/lease_board.h"
#include "exec/process_host.h"
#include "exec/warden.h"
#include "net/transport.h"
#include "runtime/log.h"
#include "runtime/loop.h"
#include "runtime/queue_driver.h"
#include "runtime/registration.h"

namespace lictor::app {
namespace {

using runtime::Level;
using runtime::log;

constexpr int kExitFailed = 1;
constexpr int kExitBadConfiguration = 2;

int refuse(const Error& error) {
  log(Level::kError, error.message);
  return error.code == ErrorCode::kInvalid            ? kExitBadConfiguration
         : error.code == ErrorCode::kPermissionDenied ? 5
                                                      : kExitFailed;
}

runtime::Level to_level(LogLevel level) { return static_cast<runtime::Level>(level); }

runtime::LogStyle to_style(LogFormat format) {
  switch (format) {
    case LogFormat::kText:
      return runtime::LogStyle::kText;
    case LogFormat::kJson:
      return runtime::LogStyle::kJson;
    case LogFormat::kJournal:
      return runtime::LogStyle::kJournal;
  }
  return runtime::LogStyle::kText;
}

Duration longest_kill_grace(const Config& config) {
  Duration longest{};
  for (const QueueConfig& queue : config.queues) {
    longest = std::max(longest, queue.options.kill_grace);
  }
  return longest;
}

wire::Binding make_binding(const Config& config, const QueueConfig& queue) {
  wire::Binding binding;
  binding.layout = layout_of(queue);
  binding.queue = queue.options.queue;
  binding.node = config.node;
  binding.session_ttl = queue.options.session_ttl;
  binding.lock_delay = queue.options.lock_delay;
  binding.session_checks = queue.session_checks;
  binding.request_timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(queue.options.request_timeout);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  binding.leader_value =
      nlohmann::json{{"node", config.node},
                     {"host", host.data()},
                     {"pid", getpid()},
                     {"admin", config.admin.listen.empty() ? "" : config.admin.listen.front()},
                     {"version", LICTOR_VERSION},
                     {"since", format_rfc3339(wall_now())}}
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return binding;
}

// The daemon while it runs: everything on the loop's thread.
class Daemon {
 public:
  Daemon(const Config& config, const Registry& registry, const RunOptions& options,
         runtime::Loop& loop, net::Transport& transport, exec::ProcessHost& host)
      : config_(config),
        registry_(registry),
        options_(options),
        loop_(loop),
        transport_(transport),
        host_(host),
        registration_(config.node, LICTOR_VERSION, transport) {}

  [[nodiscard]] Result<void> make_queues() {
    const std::string identity = Random{random_seed()}.hex();
    exec::LeaseSlot slot = 0;
    for (const QueueConfig& queue : config_.queues) {
      auto runners = make_runners(config_, queue, slot, host_, registry_);
      if (!runners) return tl::unexpected(std::move(runners.error()));
      runtime::QueueDriver::Parts parts;
      parts.options = queue.options;
      parts.options.node = config_.node;
      parts.options.identity = identity;
      parts.binding = make_binding(config_, queue);
      parts.runners = std::move(*runners);
      parts.lease_slot = slot++;
      parts.state_dir = config_.state_dir;
      queues_.push_back(
          std::make_unique<runtime::QueueDriver>(std::move(parts), loop_, transport_, host_));
      loop_.add(*queues_.back());
    }
    if (config_.consul.register_service) loop_.add(registration_);
    return {};
  }

  void run() {
    loop_.on_signal([this](int signal) { on_signal(signal); });
    loop_.on_clock_step([this] {
      for (auto& queue : queues_) queue->read_wall_clock();
    });
    std::uint64_t watchdog_us = 0;
    Duration interval = std::chrono::seconds{10};
    if (sd_watchdog_enabled(0, &watchdog_us) > 0) {
      // Thrice in the span, so that one late turn does no harm.
      interval = std::min<Duration>(interval, std::chrono::microseconds{watchdog_us / 3});
    }
    loop_.on_turn(interval, [this] { on_turn(); });
    for (auto& queue : queues_) queue->start();
    sd_notify(0, "READY=1");
    loop_.run();
    sd_notify(0, "STOPPING=1");
    if (config_.consul.register_service) registration_.withdraw();
  }

  // From the host's thread: the jobs are ended, and none can be started.
  void on_warden_death() {
    warden_died_ = true;
    loop_.wake();
  }

  [[nodiscard]] bool warden_died() const { return warden_died_; }
  [[nodiscard]] std::size_t running() const {
    std::size_t jobs = 0;
    for (const auto& queue : queues_) jobs += queue->running();
    return jobs;
  }

 private:
  void on_signal(int signal) {
    if (signal == SIGHUP) {
      log(Level::kWarn,
          "SIGHUP: this version reads its configuration only at the start; restart it");
      return;
    }
    if (stopping_) {
      // The second one is from somebody who will not wait: jobs are ended by the warden, and the
      // lock by the session's TTL and the lock-delay.
      log(Level::kWarn, "stopping at once; the lead passes on after the session's TTL");
      std::_Exit(128 + signal);
    }
    log(Level::kInfo, "stopping: running jobs may finish; a second signal stops at once");
    request_stop();
  }

  void request_stop() {
    stopping_ = true;
    for (auto& queue : queues_) queue->request_stop();
  }

  void on_turn() {
    sd_notify(0, "WATCHDOG=1");
    const Instant now = boot_now();
    std::vector<std::string> leading;
    bool stopped = true;
    bool drained = true;
    for (const auto& queue : queues_) {
      if (queue->leading(now)) leading.push_back(queue->name());
      stopped = stopped && queue->stopped();
      drained = drained && queue->drained();
    }
    if (leading != leading_) {
      leading_ = leading;
      std::string status = "STATUS=following";
      for (const std::string& name : leading_) {
        status += status == "STATUS=following" ? "" : ", " + name;
        if (status == "STATUS=following") status = "STATUS=leading " + name;
      }
      sd_notify(0, status.c_str());
    }
    registration_.set_leading(std::move(leading));
    if (stopped) return loop_.stop();
    if (stopping_) return;
    if (warden_died_) {
      log(Level::kError, "the warden died; its jobs were ended; stopping, to be started anew");
      request_stop();
    } else if (options_.once && drained) {
      log(Level::kInfo, "nothing that is due is left");
      request_stop();
    }
  }

  const Config& config_;
  const Registry& registry_;
  const RunOptions options_;
  runtime::Loop& loop_;
  net::Transport& transport_;
  exec::ProcessHost& host_;
  runtime::Registration registration_;
  std::vector<std::unique_ptr<runtime::QueueDriver>> queues_;
  std::vector<std::string> leading_;
  std::atomic<bool> warden_died_ = false;
  bool stopping_ = false;
};

}  // namespace

int run_daemon(const Config& config, const Registry& registry, const RunOptions& options) {
  runtime::set_up_log(to_style(config.log.format), to_level(config.log.level));
  for (const std::string& warning : config.warnings) log(Level::kWarn, warning);
  signal(SIGPIPE, SIG_IGN);

  auto lock =
      lock_state_dir(config.state_dir, longest_kill_grace(config) + std::chrono::seconds{5});
  if (!lock) return refuse(lock.error());
  prepare_scratch(config);
  auto board = exec::LeaseBoard::create();
  if (!board) return refuse(board.error());
  auto warden = exec::start_warden(*board, lock->get());  // before there is any thread
  if (!warden) return refuse(warden.error());
  auto loop = runtime::Loop::create();
  if (!loop) return refuse(loop.error());

  std::atomic<Daemon*> daemon_if_up = nullptr;
  exec::ProcessHost::Hooks hooks;
  hooks.on_warning = [](const std::string& warning) { log(Level::kWarn, warning); };
  hooks.on_warden_death = [&daemon_if_up] {
    if (Daemon* daemon = daemon_if_up) daemon->on_warden_death();
  };
  auto host = exec::ProcessHost::create(std::move(*warden), *board, std::move(hooks));
  if (!host) return refuse(host.error());
  auto transport = net::Transport::open(config.consul.options);
  if (!transport) return refuse(transport.error());

  Daemon daemon{config, registry, options, **loop, **transport, **host};
  if (auto made = daemon.make_queues(); !made) return refuse(made.error());
  daemon_if_up = &daemon;
  log(Level::kInfo, "lictor runs",
      {{"version", LICTOR_VERSION},
       {"node", config.node},
       {"queues", std::to_string(config.queues.size())},
       {"consul", config.consul.options.addresses.front()}});
  daemon.run();
  daemon_if_up = nullptr;

  if (daemon.running() != 0) {
    // A C++ executor does not return. Its thread ends with the process and not before.
    log(Level::kError, "jobs are still running; leaving them to the warden",
        {{"jobs", std::to_string(daemon.running())}});
    std::_Exit(kExitFailed);
  }
  log(Level::kInfo, "stopped");
  return daemon.warden_died() ? kExitFailed : 0;
}

}  // namespace lictor::app
