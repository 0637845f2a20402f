#pragma once

namespace lictor {

/// How an attempt ended, for its task.
enum class JobEnding {
  kDone,        ///< finish the task
  kRetry,       ///< it failed; try again while attempts are left
  kPermanent,   ///< it failed; trying again cannot help
  kStopped,     ///< it ended on a stop, or with its lease
  kLost,        ///< its runner died, perhaps because of the job
  kNotStarted,  ///< no job ran: the host or the receiver is at fault, and not the task
};

/// Whether the receiver of an attempt took it.
enum class JobTaken {
  kYes,     ///< the attempt's ending counts for the task
  kHardly,  ///< the connection was closed before all of it was read
  kNo,      ///< it was refused unread, for its credentials
};

}  // namespace lictor
