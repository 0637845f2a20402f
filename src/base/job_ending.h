#pragma once

namespace lictor {

/// How an attempt ended, for its task.
enum class JobEnding {
  kDone,        ///< finish the task
  kRetry,       ///< it failed; try again while attempts are left
  kPermanent,   ///< it failed; trying again cannot help
  kStopped,     ///< it ended because it was told to stop, or the lease ran out
  kLost,        ///< what ran it died: it may be the job that killed it
  kNotStarted,  ///< nothing ran: the host lacked a resource
};

}  // namespace lictor
