#pragma once

#include <memory>
#include <string>
#include <utility>

#include "exec/runner.h"
#include "worker/room.h"

namespace lictor::worker {

/// Gives each attempt to a process that stays and takes one after the other (workers.md).
///
/// It is the executor's side of a pool: takes the room's mutex for each call, and is the pool's
/// user, so that the pool ends its processes when no runner uses it any more.
class WorkerRunner : public exec::Runner {
 public:
  /// `room` must outlive the runner; attempts may outlive the runner. Errors: kInvalid, there is no
  /// program; kFailed, no descriptor or thread.
  [[nodiscard]] static Result<std::unique_ptr<WorkerRunner>> create(Room& room,
                                                                    WorkerOptions options);
  ~WorkerRunner() override;
  WorkerRunner(const WorkerRunner&) = delete;
  WorkerRunner& operator=(const WorkerRunner&) = delete;

  [[nodiscard]] Result<void> start(exec::Attempt attempt, Instant deadline,
                                   exec::ExitCallback on_exit) override;
  /// Sends "cancel"; a process that has not answered within `grace` is ended.
  void stop(AttemptId attempt, std::chrono::milliseconds grace) override;
  [[nodiscard]] bool reports_pid() const override { return true; }
  [[nodiscard]] std::string progress(AttemptId attempt) override;
  /// Starts a process if there is none, to find out by figures() whether that works.
  void warm();
  [[nodiscard]] Figures figures() const;

 private:
  WorkerRunner(Room& room, std::shared_ptr<Pool> pool, exec::LeaseSlot first_slot)
      : room_(room), pool_(std::move(pool)), first_slot_(first_slot) {}

  Room& room_;
  const std::shared_ptr<Pool> pool_;
  const exec::LeaseSlot first_slot_;  ///< kNoLease: attempts go on when it is lost
};

}  // namespace lictor::worker
