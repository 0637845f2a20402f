#include "app/reload.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/config_internal.h"
#include "exec/plugin.h"

namespace lictor::app {
namespace {

constexpr std::pair<const char*, Duration core::QueueOptions::*> kKeptTimes[]{
    {"session_ttl", &core::QueueOptions::session_ttl},
    {"renew_interval", &core::QueueOptions::renew_interval},
    {"lock_delay", &core::QueueOptions::lock_delay},
    {"request_timeout", &core::QueueOptions::request_timeout},
    {"kill_grace", &core::QueueOptions::kill_grace}};

}  // namespace

// A session, a lock, a socket or a thread keeps what it was made with. This function and
// for_running() belong together: what one names, the other holds back.
std::vector<std::string> needs_restart(const Config& running, const Config& next) {
  std::vector<std::string> changed;
  const auto note = [&](const char* setting, bool same) {
    if (!same) changed.emplace_back(setting);
  };
  note("node", running.node == next.node);
  note("root", running.root == next.root);
  note("state_dir", running.state_dir == next.state_dir);
  note("log.format", running.log.format == next.log.format);
  note("consul", running.consul.options == next.consul.options &&
                     running.consul.register_service == next.consul.register_service);
  note("admin", running.admin == next.admin);
  note("logs", running.logs == next.logs);
  for (const QueueConfig& queue : running.queues) {
    const std::string place = "queue " + queue.options.queue;
    const QueueConfig* other = next.find(queue.options.queue);
    if (other == nullptr) {
      changed.push_back(place + " (gone)");
      continue;
    }
    const auto note_of_queue = [&](std::string_view setting, bool same) {
      if (!same) changed.push_back(fmt::format("{}: {}", place, setting));
    };
    for (const QueuePath& known : kQueuePaths) {
      note_of_queue(known.setting, queue.layout.*known.path == other->layout.*known.path);
    }
    note_of_queue("serialize_by", queue.layout.serialize_by == other->layout.serialize_by);
    note_of_queue("session_checks", queue.session_checks == other->session_checks);
    for (const auto& [setting, time] : kKeptTimes) {
      note_of_queue(setting, queue.options.*time == other->options.*time);
    }
  }
  if (next.queues.size() > running.queues.size()) changed.emplace_back("queues (new ones)");
  // Last: where it is not set it follows from session_ttl, which comes first.
  note("hang_timeout", running.hang_timeout == next.hang_timeout);
  for (const std::string& file : exec::replaced_plugins()) changed.push_back("plug-in " + file);
  return changed;
}

Config for_running(const Config& running, Config next) {
  std::vector<QueueConfig> queues;
  for (const QueueConfig& queue : running.queues) {
    const QueueConfig* other = next.find(queue.options.queue);
    QueueConfig& taken = queues.emplace_back(other == nullptr ? queue : *other);
    taken.layout = queue.layout;
    taken.session_checks = queue.session_checks;
    for (const auto& [setting, time] : kKeptTimes) taken.options.*time = queue.options.*time;
  }
  next.queues = std::move(queues);
  next.node = running.node;
  next.root = running.root;
  next.state_dir = running.state_dir;
  next.log.format = running.log.format;
  next.consul = running.consul;
  next.admin = running.admin;
  next.logs = running.logs;
  next.hang_timeout = running.hang_timeout;
  return next;
}

Reloader::~Reloader() {
  if (thread_.joinable()) thread_.join();
}

void Reloader::request() {
  again_ = busy_;
  if (!busy_) start();
}

// The thread ends once it has posted its result, so the next start() never waits for a load.
void Reloader::start() {
  if (thread_.joinable()) thread_.join();  // It has handed over its result, so it is at its end.
  thread_ = std::thread{[this] {
    loop_.post([this, apply = load_()] {
      apply();
      busy_ = false;
      if (std::exchange(again_, false)) {
        start();
      } else {
        idle_();
      }
    });
  }};
  busy_ = true;
}

}  // namespace lictor::app
