#pragma once

namespace lictor {

/// How an attempt ended, for its task.
enum class JobEnding {
  kDone,        ///< finish the task
  kRetry,       ///< it failed; try again while attempts are left
  kPermanent,   ///< it failed; trying again cannot help
  kStopped,     ///< it ended on a stop, or with its lease
  kLost,        ///< what ran it died: it may be the job that killed it
  kNotStarted,  ///< nothing ran: the host or the receiver is at fault, and not the task
};

/// Whether what an attempt was given to took it.
enum class JobTaken {
  kYes,     ///< how the attempt ended is the task's
  kHardly,  ///< the connection was closed before all of it was read
  kNo,      ///< it was refused before it was looked at, for its credentials
};

}  // namespace lictor
