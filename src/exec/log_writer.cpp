#include "exec/log_writer.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace lictor::exec {
namespace {

// An order's memory beside its bytes.
constexpr std::size_t kOrderBytes = 512;

// The caller waits for kPatience at most in each window; short waits do not count.
constexpr Duration kWindow = 10 * LogWriter::kPatience;
constexpr Duration kShortWait = std::chrono::milliseconds{100};

// Thousands of jobs may find the same disk full.
constexpr Duration kWarningPause = std::chrono::seconds{10};

}  // namespace

struct LogWriter::State {
  struct Order {
    std::size_t bytes;
    std::function<void()> work;
  };

  explicit State(std::function<void(std::string)> warning) : on_warning(std::move(warning)) {}

  /// The thread: carries out orders one by one, without the mutex, until `closing` and none left.
  void carry_out_all();
  /// False: there is no room, and none came free while the caller waited.
  [[nodiscard]] bool post(std::size_t bytes, std::function<void()> work);
  /// Waits for `condition` as long as the caller's patience lasts; returns whether it holds.
  [[nodiscard]] bool wait_for(std::unique_lock<std::mutex>& lock,
                              const std::function<bool()>& condition);
  void warn(std::string problem);

  const std::function<void(std::string)> on_warning;

  std::mutex mutex;  // guards all members below
  std::condition_variable posted;
  std::condition_variable done;
  std::deque<Order> orders;
  std::size_t waiting_bytes = 0;  // with the order under way
  std::uint64_t last_posted = 0;  // numbers, from 1 on
  std::uint64_t last_done = 0;
  bool stands_still = false;  // a caller has waited in vain since the last order was done
  bool closing = false;
  bool ended = false;
  Instant window_began{};
  Duration waited{};  // in that window, short waits not counted
  Instant last_warning{};
};

void LogWriter::State::carry_out_all() {
  std::unique_lock lock{mutex};
  while (true) {
    posted.wait(lock, [this] { return closing || !orders.empty(); });
    if (orders.empty()) break;
    Order order = std::move(orders.front());
    orders.pop_front();
    lock.unlock();
    order.work();
    order.work = nullptr;
    lock.lock();
    waiting_bytes -= order.bytes;
    ++last_done;
    stands_still = false;
    done.notify_all();
  }
  ended = true;
  done.notify_all();
}

bool LogWriter::State::wait_for(std::unique_lock<std::mutex>& lock,
                                const std::function<bool()>& condition) {
  if (condition()) return true;
  if (stands_still) return false;
  const Instant now = boot_now();
  if (now - window_began > kWindow) {
    window_began = now;
    waited = {};
  }
  const std::uint64_t before = last_done;
  const bool came =
      done.wait_for(lock, std::max<Duration>(kPatience - waited, kShortWait), condition);
  const Duration took = boot_now() - now;
  if (took > kShortWait) waited += took;
  stands_still = !came && last_done == before;
  return came;
}

bool LogWriter::State::post(std::size_t bytes, std::function<void()> work) {
  bytes += kOrderBytes;
  std::unique_lock lock{mutex};
  if (!wait_for(lock, [&] { return waiting_bytes + bytes <= kMostBytes; })) return false;
  orders.push_back({bytes, std::move(work)});
  waiting_bytes += bytes;
  ++last_posted;
  posted.notify_one();
  return true;
}

void LogWriter::State::warn(std::string problem) {
  if (problem.empty() || !on_warning) return;
  {
    const std::lock_guard lock{mutex};
    const Instant now = boot_now();
    if (last_warning != Instant{} && now - last_warning < kWarningPause) return;
    last_warning = now;
  }
  on_warning(std::move(problem));
}

LogWriter::Log::Log(const std::string& its_path, std::size_t cap,
                    std::shared_ptr<ActiveLogs> active)
    : path(its_path), active_logs(std::move(active)), file(its_path, cap) {
  if (active_logs) active_logs->add(path);
}

void LogWriter::Log::close(const LogOutcome& outcome) {
  if (!std::exchange(closed, true) && active_logs) active_logs->remove(path, outcome);
}

LogWriter::LogWriter(std::function<void(std::string)> on_warning)
    : state_(std::make_shared<State>(std::move(on_warning))),
      thread_([state = state_] { state->carry_out_all(); }) {}

LogWriter::~LogWriter() {
  bool ended = false;
  {
    std::unique_lock lock{state_->mutex};
    state_->closing = true;
    state_->posted.notify_one();
    ended = state_->wait_for(lock, [this] { return state_->ended; });
  }
  ended ? thread_.join() : thread_.detach();
}

void LogWriter::write(const std::shared_ptr<Log>& log, std::string_view bytes) {
  if (log->lost) return;
  log->used = true;
  const auto append = [log, state = state_.get(), text = std::string{bytes}] {
    std::string problem = log->file.write(text);
    if (problem.empty()) return;
    if (log->active_logs) log->active_logs->lose(log->path, log->file.outcome().error);
    state->warn(std::move(problem));
  };
  if (state_->post(bytes.size(), append)) return;
  const std::string error = lose(*log);
  if (log->active_logs) log->active_logs->lose(log->path, error);
}

LogOutcome LogWriter::finish(const std::shared_ptr<Log>& log) {
  LogOutcome outcome = close_file(log);
  log->close(outcome);
  return outcome;
}

LogOutcome LogWriter::close_file(const std::shared_ptr<Log>& log) {
  if (!log->used) return {};
  const bool done = run([log, state = state_.get()] { state->warn(log->file.finish()); });
  if (!done) return {0, lose(*log)};
  LogOutcome outcome = log->file.outcome();
  if (log->lost && outcome.error.empty()) outcome.error = lose(*log);
  return outcome;
}

bool LogWriter::run(std::function<void()> work) {
  if (!state_->post(0, std::move(work))) return false;
  std::unique_lock lock{state_->mutex};
  return state_->wait_for(
      lock, [this, number = state_->last_posted] { return state_->last_done >= number; });
}

std::string LogWriter::lose(Log& log) {
  log.lost = true;
  std::string error = "cannot write " + log.path + ": the disk stands still";
  state_->warn(error + "; the job goes on, but its output is lost");
  return error;
}

}  // namespace lictor::exec
