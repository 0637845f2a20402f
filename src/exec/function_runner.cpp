#include "exec/function_runner.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "base/errno_text.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

// A job's error may be of any length, and is logged. A record keeps 2,000 bytes of it.
constexpr std::size_t kMaxErrorBytes = 4'000;

Exit not_started(AttemptId attempt) {
  return ended(attempt, Ending::kNotStarted, "stopped before it started");
}

}  // namespace

FunctionRunner::FunctionRunner(JobFunction function, LeaseBoard& board, std::size_t threads,
                               LeaseSlot slot)
    : function_(std::move(function)), board_(board), most_threads_(threads), first_slot_(slot) {}

FunctionRunner::~FunctionRunner() {
  {
    const std::lock_guard lock{mutex_};
    closing_ = true;
    for (const auto& [id, job] : jobs_) job->stop.request_stop();
  }
  for (Worker& worker : workers_) worker.wake.notify_one();
  for (std::thread& thread : threads_) thread.join();
}

Result<void> FunctionRunner::start(Attempt attempt, Instant deadline, ExitCallback on_exit) {
  const AttemptId id = attempt.id;
  const LeaseSlot slot = slot_of(first_slot_, attempt);
  auto job = std::make_shared<Job>(
      Job{id, slot, std::move(attempt), deadline, std::move(on_exit), {}, {}});
  if (!board_.admit(slot)) {
    return fail(ErrorCode::kUnavailable, "the lease ran out before it started");
  }
  Worker* next = nullptr;
  {
    const std::lock_guard lock{mutex_};
    jobs_[id] = job;
    waiting_.push_back(std::move(job));
    next = next_to_wake();
    if (threads_.empty()) {
      jobs_.erase(id);
      waiting_.pop_back();
      board_.release(slot);
      return fail(ErrorCode::kFailed, "cannot start a thread: " + errno_text(EAGAIN));
    }
  }
  if (next != nullptr) next->wake.notify_one();
  return {};
}

void FunctionRunner::stop(AttemptId attempt, std::chrono::milliseconds) {
  std::shared_ptr<Job> job;
  bool waits = false;
  {
    const std::lock_guard lock{mutex_};
    const auto found = jobs_.find(attempt);
    if (found == jobs_.end()) return;
    job = found->second;
    waits = std::erase(waiting_, job) > 0;
  }
  // Unlocked: both run foreign code.
  if (waits) {
    finish(*job, not_started(job->id));
  } else {
    job->stop.request_stop();
  }
}

std::string FunctionRunner::progress(AttemptId attempt) {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(attempt);
  return found == jobs_.end() ? std::string{} : found->second->progress;
}

// Call with the mutex held. Without an idle thread it starts one; if that fails, the existing
// threads do the work.
FunctionRunner::Worker* FunctionRunner::next_to_wake() {
  if (waking_ || closing_) return nullptr;
  if (idle_.empty()) {
    if (threads_.size() >= most_threads_) return nullptr;
    Worker& fresh = workers_.emplace_back();
    try {
      threads_.emplace_back([this, &fresh] { work(fresh); });
      waking_ = true;
    } catch (const std::system_error&) {
      workers_.pop_back();
    }
    return nullptr;
  }
  waking_ = true;
  Worker* next = idle_.back();
  idle_.pop_back();
  next->called = true;
  return next;
}

void FunctionRunner::work(Worker& self) {
  bool is_new = true;
  while (true) {
    std::shared_ptr<Job> job;
    Worker* next = nullptr;
    {
      std::unique_lock lock{mutex_};
      if (std::exchange(is_new, false)) waking_ = false;
      while (!closing_ && waiting_.empty()) {
        idle_.push_back(&self);
        const auto called = [&] { return self.called || closing_; };
        self.wake.wait(lock, called);
        self.called = false;
        waking_ = false;
      }
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      if (!waiting_.empty()) next = next_to_wake();
    }
    if (next != nullptr) next->wake.notify_one();
    run(*job);
  }
}

void FunctionRunner::run(Job& job) {
  if (job.stop.stop_requested()) return finish(job, not_started(job.id));
  Exit exit{};
  try {
    exit = function_(std::move(job.attempt),
                     {job.stop.get_token(), job.deadline, [&](std::string text) {
                        const std::lock_guard lock{mutex_};
                        job.progress = std::move(text);
                      }});
  } catch (const std::exception& thrown) {
    exit = ended(job.id, Ending::kRetry, thrown.what());
  } catch (...) {
    exit = ended(job.id, Ending::kRetry, "threw an exception that is not a std::exception");
  }
  if (exit.error.size() > kMaxErrorBytes) exit.error = excerpt(exit.error, kMaxErrorBytes);
  const bool failed = exit.ending == Ending::kRetry || exit.ending == Ending::kPermanent;
  if (failed && exit.error.empty()) exit.error = "it gave no reason";
  finish(job, std::move(exit));
}

// The job leaves the lease board before on_exit(), so that the core never sees an end whose job
// would still make the warden kill the daemon.
void FunctionRunner::finish(Job& job, Exit exit) {
  {
    const std::lock_guard lock{mutex_};
    jobs_.erase(job.id);
  }
  board_.release(job.slot);
  exit.attempt = job.id;
  job.on_exit(std::move(exit));
}

}  // namespace lictor::exec
