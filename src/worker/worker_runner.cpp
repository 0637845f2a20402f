#include "worker/worker_runner.h"

#include "base/try.h"

namespace lictor::worker {

Result<std::unique_ptr<WorkerRunner>> WorkerRunner::create(Room& room, WorkerOptions options) {
  const exec::ProcessOptions& program = options.program;
  if (program.argv.empty() || program.argv.front().empty()) {
    return fail(ErrorCode::kInvalid, "worker: expected a program and its arguments, got nothing");
  }
  const exec::LeaseSlot slot = program.ends_with_lease ? program.slot : exec::kNoLease;
  LICTOR_TRY(auto pool, room.join(std::move(options)));
  return std::unique_ptr<WorkerRunner>{new WorkerRunner{room, std::move(pool), slot}};
}

WorkerRunner::~WorkerRunner() { room_.leave(pool_); }

Result<void> WorkerRunner::start(exec::Attempt attempt, Instant deadline,
                                 exec::ExitCallback on_exit) {
  Job job;
  job.lease = exec::slot_of(first_slot_, attempt);
  job.attempt = std::move(attempt);
  job.deadline = deadline;
  job.on_exit = std::move(on_exit);
  room_.start(*pool_, std::move(job));
  return {};
}

void WorkerRunner::stop(AttemptId attempt, std::chrono::milliseconds grace) {
  room_.stop(*pool_, attempt, grace);
}

std::string WorkerRunner::progress(AttemptId attempt) { return room_.progress(*pool_, attempt); }

}  // namespace lictor::worker
