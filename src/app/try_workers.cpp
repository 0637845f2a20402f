// For "lictor check": a worker that does not get ready is found before the first task needs it.
// Each is started alone, by a warden, as the daemon would do it, and ended again.

#include "app/try_workers.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "app/state_dir.h"
#include "base/clock.h"
#include "exec/privileges.h"
#include "exec/process_host.h"
#include "exec/warden.h"
#include "worker/worker_runner.h"

namespace lictor::app {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds{5};
// A process that is not ready is ended, and then its end is reported.
constexpr Duration kEndsWithin = std::chrono::seconds{5};

cli::CheckOptions::Worker try_worker(worker::Room& room, const QueueConfig& queue,
                                     const std::string& type, WorkerConfig options,
                                     const std::optional<exec::User>& owner) {
  cli::CheckOptions::Worker tried{queue.options.queue, type, {}, {}};
  options.queue = queue.options.queue;
  options.type = type;
  options.program.grace = queue.options.kill_grace;
  if (!options.program.user) options.program.user = owner;
  const Instant begin = boot_now();
  const Instant until = begin + options.start_timeout + kEndsWithin;
  auto runner = worker::WorkerRunner::create(room, std::move(options));
  if (!runner) {
    tried.error = runner.error().message;
    return tried;
  }
  (*runner)->warm();
  worker::Figures figures = (*runner)->figures();
  while (figures.idle == 0 && figures.start_error.empty() && boot_now() < until) {
    std::this_thread::sleep_for(kLookEvery);
    figures = (*runner)->figures();
  }
  tried.ready_after = boot_now() - begin;
  if (figures.idle == 0) {
    tried.error = figures.start_error.empty() ? "it does not end" : figures.start_error;
  }
  return tried;
}

}  // namespace

std::vector<cli::CheckOptions::Worker> try_workers(const Config& config) {
  std::vector<cli::CheckOptions::Worker> tried;
  bool any = false;
  for (const QueueConfig& queue : config.queues) {
    for (const auto& [type, executor] : queue.executors) {
      any = any || std::holds_alternative<WorkerConfig>(executor);
    }
  }
  if (!any) return tried;
  const auto not_tried = [&](const Error& error) {
    return std::vector<cli::CheckOptions::Worker>{{"", "", {}, "not tried: " + error.message}};
  };
  std::optional<exec::User> owner;
  if (const std::string name = state_dir_owner(config.state_dir);
      ::geteuid() == 0 && !name.empty()) {
    auto found = exec::find_user(name);
    if (!found) return not_tried(found.error());
    owner = *std::move(found);
  }
  constexpr exec::LeaseSlot kFirst = 1;
  auto board = exec::LeaseBoard::create(kFirst + worker::kMostProcesses);
  if (!board) return not_tried(board.error());
  auto warden = exec::start_warden(*board, {});
  if (!warden) return not_tried(warden.error());
  auto host = exec::ProcessHost::create(std::move(*warden), *board, {});
  if (!host) return not_tried(host.error());
  worker::Room room{**host, kFirst};
  for (const QueueConfig& queue : config.queues) {
    for (const auto& [type, executor] : queue.executors) {
      if (const auto* worker = std::get_if<WorkerConfig>(&executor)) {
        tried.push_back(try_worker(room, queue, type, *worker, owner));
      }
    }
  }
  return tried;
}

}  // namespace lictor::app
