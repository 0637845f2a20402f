#include "app/reload.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "app/config_parts.h"

namespace lictor::app {
namespace {

void compare_queue(const QueueConfig& running, const QueueConfig& next,
                   std::vector<std::string>& changed) {
  const auto note = [&](std::string_view setting, bool same) {
    if (!same) changed.push_back(fmt::format("queue {}: {}", running.options.queue, setting));
  };
  const core::QueueOptions& a = running.options;
  const core::QueueOptions& b = next.options;
  for (const QueuePath& known : kQueuePaths) {
    note(known.setting, running.layout.*known.path == next.layout.*known.path);
  }
  note("serialize_by", running.layout.serialize_by == next.layout.serialize_by);
  note("session_checks", running.session_checks == next.session_checks);
  note("session_ttl", a.session_ttl == b.session_ttl);
  note("renew_interval", a.renew_interval == b.renew_interval);
  note("lock_delay", a.lock_delay == b.lock_delay);
  note("request_timeout", a.request_timeout == b.request_timeout);
  note("kill_grace", a.kill_grace == b.kill_grace);
}

}  // namespace

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
    if (const QueueConfig* other = next.find(queue.options.queue)) {
      compare_queue(queue, *other, changed);
    } else {
      changed.push_back("queue " + queue.options.queue + " (gone)");
    }
  }
  if (next.queues.size() > running.queues.size()) changed.emplace_back("queues (new ones)");
  // Last: where it is not set it follows from session_ttl, which is told first.
  note("hang_timeout", running.hang_timeout == next.hang_timeout);
  return changed;
}

Reloader::~Reloader() {
  if (thread_.joinable()) thread_.join();
}

void Reloader::request() {
  again_ = busy_;
  if (!busy_) start();
}

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
