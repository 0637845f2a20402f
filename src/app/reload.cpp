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

// A session, a lock, a socket or a thread keeps what it was made with.
std::vector<std::string> hold_back(const Config& running, Config& next) {
  std::vector<std::string> changed;
  const auto keep = [&](const std::string& setting, const auto& own, auto& read) {
    if (read != own) changed.push_back(setting);
    read = own;
  };
  keep("node", running.node, next.node);
  keep("root", running.root, next.root);
  keep("state_dir", running.state_dir, next.state_dir);
  keep("log.format", running.log.format, next.log.format);
  keep("consul", running.consul, next.consul);
  keep("admin", running.admin, next.admin);
  keep("logs", running.logs, next.logs);
  std::vector<QueueConfig> queues;
  for (const QueueConfig& queue : running.queues) {
    const std::string place = "queue " + queue.options.queue;
    const QueueConfig* read = next.find(queue.options.queue);
    if (read == nullptr) changed.push_back(place + " (gone)");
    QueueConfig& taken = queues.emplace_back(read == nullptr ? queue : *read);
    const auto keep_of_queue = [&](std::string_view setting, const auto& own, auto& other) {
      keep(fmt::format("{}: {}", place, setting), own, other);
    };
    for (const auto& [setting, path] : kQueuePaths) {
      keep_of_queue(setting, queue.layout.*path, taken.layout.*path);
    }
    keep_of_queue("serialize_by", queue.layout.serialize_by, taken.layout.serialize_by);
    taken.layout = queue.layout;  // The rest of it follows from "root".
    keep_of_queue("session_checks", queue.session_checks, taken.session_checks);
    for (const auto& [setting, time] : kKeptTimes) {
      keep_of_queue(setting, queue.options.*time, taken.options.*time);
    }
  }
  if (next.queues.size() > running.queues.size()) changed.emplace_back("queues (new ones)");
  next.queues = std::move(queues);
  // This comes last: if it is not set, it follows from session_ttl.
  keep("hang_timeout", running.hang_timeout, next.hang_timeout);
  for (const std::string& file : exec::replaced_plugins()) changed.push_back("plug-in " + file);
  return changed;
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
