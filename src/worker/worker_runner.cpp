#include "worker/worker_runner.h"

#include "base/clock.h"
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
  Room::Turn turn{room_};
  pool_->start(std::move(job), boot_now(), turn.out);
  return {};
}

void WorkerRunner::stop(AttemptId attempt, std::chrono::milliseconds grace) {
  Room::Turn turn{room_};
  pool_->stop(attempt, boot_now(), grace, turn.out);
}

std::string WorkerRunner::progress(AttemptId attempt) {
  const Room::Turn turn{room_};
  return pool_->progress(attempt);
}

void WorkerRunner::warm() {
  Room::Turn turn{room_};
  pool_->warm(turn.out);
}

Figures WorkerRunner::figures() const {
  const Room::Turn turn{room_};
  return pool_->figures();
}

}  // namespace lictor::worker
