#include "exec/function_runner.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "base/errno_text.h"
#include "base/printable.h"
#include "base/text.h"

namespace lictor::exec {
namespace {

// A job's error may be of any length, and is logged. A record keeps 2,000 bytes of it.
constexpr std::size_t kMaxErrorBytes = 4'000;

// The runner whose job has ended on this thread and is calling on_exit().
thread_local const FunctionRunner* t_ends_job = nullptr;

// The task whose job runs on this thread, and the number of jobs in this process.
thread_local const std::string* t_task = nullptr;
std::atomic<int> running_jobs = 0;

// As long as it lives, a job runs on this thread.
struct RunningJob {
  explicit RunningJob(const std::string& task) {
    t_task = &task;
    ++running_jobs;
  }
  ~RunningJob() {
    --running_jobs;
    t_task = nullptr;
  }
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;
};

// exit() runs it on the thread that has called it. The other threads still run and use what exit()
// would destroy next, so the process ends here, and not with the status 0 of a daemon that was
// stopped.
void on_process_exit() {
  // A thread that a job has made may call it, too. The main thread ends the process in order.
  const bool is_main = getpid() == gettid();
  if (t_task == nullptr && (running_jobs == 0 || is_main)) return;
  const std::string who =
      t_task ? "the job of task " + printable(*t_task) : "a thread of a C++ job";
  std::fprintf(stderr, "%s called exit(), which ends its whole process\n", who.c_str());
  _exit(EXIT_FAILURE);
}

void watch_process_exit() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit(on_process_exit);
    std::at_quick_exit(on_process_exit);
  });
}

Exit not_started(AttemptId attempt) {
  return ended(attempt, Ending::kNotStarted, "stopped before it started");
}

}  // namespace

FunctionRunner::FunctionRunner(JobFunction function, LeaseBoard& board, std::size_t threads,
                               LeaseSlot slot)
    : function_(std::move(function)), board_(board), first_slot_(slot), threads_(threads) {
  watch_process_exit();
}

FunctionRunner::~FunctionRunner() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [id, job] : jobs_) jobs.push_back(job);
  }
  for (const auto& job : jobs) job->stop.request_stop();  // runs foreign code
  threads_.stop();
}

Result<void> FunctionRunner::start(Attempt attempt, Instant deadline, ExitCallback on_exit) {
  const AttemptId id = attempt.id;
  const LeaseSlot slot = slot_of(first_slot_, attempt);
  auto job = std::make_shared<Job>(Job{slot, std::move(attempt), deadline, std::move(on_exit)});
  if (!board_.admit(slot)) {
    return fail(ErrorCode::kUnavailable, kLeaseOver);
  }
  {
    const std::lock_guard lock{mutex_};
    jobs_[id] = job;
  }
  auto work = [this, id, job] { run(id, *job); };
  const bool posted =
      t_ends_job == this ? threads_.post_next(std::move(work)) : threads_.post(std::move(work));
  if (posted) return {};
  {
    const std::lock_guard lock{mutex_};
    jobs_.erase(id);
  }
  board_.release(slot);
  return fail(ErrorCode::kFailed, "cannot start a thread: " + errno_text(EAGAIN));
}

// Callbacks of stop and on_exit are foreign code, so they run without the mutex. A job that has not
// begun is over once it has left jobs_.
void FunctionRunner::stop(AttemptId attempt, std::chrono::milliseconds) {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock{mutex_};
    const auto found = jobs_.find(attempt);
    if (found == jobs_.end()) return;
    job = found->second;
    if (!job->began) jobs_.erase(found);
  }
  if (job->began) {
    job->stop.request_stop();
  } else {
    finish(attempt, *job, not_started(attempt));
  }
}

std::string FunctionRunner::progress(AttemptId attempt) {
  const std::lock_guard lock{mutex_};
  const auto found = jobs_.find(attempt);
  return found == jobs_.end() ? std::string{} : found->second->progress;
}

void FunctionRunner::run(AttemptId id, Job& job) {
  {
    const std::lock_guard lock{mutex_};
    if (!jobs_.contains(id)) return;  // stopped
    job.began = true;
  }
  if (job.stop.stop_requested()) return finish(id, job, not_started(id));
  const std::string task = job.attempt.key_id;
  Exit exit{};
  try {
    const RunningJob running{task};
    exit = function_(std::move(job.attempt),
                     {job.stop.get_token(), job.deadline, [&](std::string text) {
                        const std::lock_guard lock{mutex_};
                        job.progress = std::move(text);
                      }});
  } catch (const std::exception& thrown) {
    exit = ended(id, Ending::kRetry, thrown.what());
  } catch (...) {
    exit = ended(id, Ending::kRetry, "threw an exception that is not a std::exception");
  }
  if (exit.error.size() > kMaxErrorBytes) exit.error = excerpt(exit.error, kMaxErrorBytes);
  const bool failed = exit.ending == Ending::kRetry || exit.ending == Ending::kPermanent;
  if (failed && exit.error.empty()) exit.error = "it gave no reason";
  exit.spares_thread = threads_.empty();
  t_ends_job = this;
  finish(id, job, std::move(exit));
  t_ends_job = nullptr;
}

// The job leaves the lease board before on_exit(). Otherwise the core could see the end while the
// warden would still kill the daemon for the job.
void FunctionRunner::finish(AttemptId id, const Job& job, Exit exit) {
  {
    const std::lock_guard lock{mutex_};
    jobs_.erase(id);
  }
  board_.release(job.slot);
  exit.attempt = id;
  job.on_exit(std::move(exit));
}

}  // namespace lictor::exec
