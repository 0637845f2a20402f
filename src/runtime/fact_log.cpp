#include "runtime/fact_log.h"

#include "base/time_text.h"

namespace lictor::runtime {

using Kind = core::Fact::Kind;

FactWords words_of(Kind kind) {
  switch (kind) {
    case Kind::kCampaigning:
      return {"following", Level::kInfo, "another member leads; waiting", "leader"};
    case Kind::kLeading:
      return {"leading", Level::kInfo, "leading"};
    case Kind::kLeaseLost:
      return {"lock_lost", Level::kWarn, "lost the lock; stopping its jobs"};
    case Kind::kLeaseExpired:
      return {"lease_expired", Level::kWarn,
              "the lease ran out without a proof of leadership; stopping its jobs"};
    case Kind::kLeaseRegained:
      return {"lease_regained", Level::kInfo, "leadership proved again"};
    case Kind::kLeaderRestored:
      return {"leader_key_restored", Level::kWarn,
              "another client overwrote the leader key; restored it, still leading"};
    case Kind::kSteppingDown:
      return {"stepping_down", Level::kInfo,
              "asked to step down; running jobs may finish, no new tasks are started", "by"};
    case Kind::kSteppedDown:
      return {"stepped_down", Level::kInfo, "stepped down"};
    case Kind::kStopped:
      return {"stopped", Level::kInfo, "stopped"};
    case Kind::kSessionCreated:
      return {"session_created", Level::kDebug, "session created", "session"};
    case Kind::kSessionLost:
      return {"session_lost", Level::kWarn, "the session is gone; creating a new one", "session"};
    case Kind::kLockDelay:
      return {"lock_delay", Level::kInfo,
              "the last leader was lost; waiting for its lock-delay to end", "error", "left"};
    case Kind::kClaimed:
      return {"claimed", Level::kDebug, "claimed"};
    case Kind::kStarted:
      return {"started", Level::kInfo, "started", "type", "claimed_for"};
    case Kind::kDone:
      return {"done", Level::kInfo, "done", "type"};
    case Kind::kDoneLate:
      return {"done_late", Level::kWarn, "finished successfully after its timeout", "type"};
    case Kind::kResultVoid:
      return {"result_void", Level::kWarn,
              "the task was rewritten while its job ran; this result is discarded, and the task "
              "runs again as it is now"};
    case Kind::kGoesOn:
      return {"goes_on", Level::kWarn,
              "the job was told to stop and still runs after kill_grace; it keeps its slot until "
              "it ends",
              "why"};
    case Kind::kFailed:
      return {"failed", Level::kWarn, "failed; trying again", "error", "again_in"};
    case Kind::kNotStarted:
      return {"not_started", Level::kWarn,
              "this host cannot start the job; the task goes back to the queue, and no attempt is "
              "counted",
              "error", "again_in"};
    case Kind::kDead:
      return {"dead", Level::kError, "becomes a dead letter"};
    case Kind::kGivenBack:
      return {"given_back", Level::kInfo, "given back to the queue"};
    case Kind::kLost:
      return {"owner_lost", Level::kWarn, "its owner is lost; taking it over", "owner"};
    case Kind::kWithdrawn:
      return {"withdrawn", Level::kInfo, "withdrawn"};
    case Kind::kChanged:
      return {"rewritten", Level::kDebug, "rewritten"};
    case Kind::kTooLarge:
      return {
          "too_large", Level::kError,
          "too large for one transaction, so it is never claimed; write it smaller or delete it"};
    case Kind::kDenied:
      return {"denied", Level::kError,
              "Consul refused for lack of rights (\"lictor check\" names the rule); trying again "
              "in 5s"};
    case Kind::kStoreTrouble:
      return {"consul_trouble", Level::kWarn, "a request to Consul failed; trying again"};
    case Kind::kPaused:
      return {"paused", Level::kInfo, "paused", "by"};
    case Kind::kControlUnreadable:
      return {"control_unreadable", Level::kWarn,
              "the control key cannot be read; paused until it is put right (\"lictor resume\")"};
    case Kind::kResumed:
      return {"resumed", Level::kInfo, "resumed", "by"};
    case Kind::kUnnameable:
      return {"unnameable", Level::kError,
              "its key is not valid UTF-8 and cannot be run; write the task under another key and "
              "delete this one"};
    case Kind::kInFolder:
      return {"in_folder", Level::kWarn,
              "a key that ends in \"/\" is a folder and never runs; write the task without the "
              "\"/\", or delete it"};
    case Kind::kUnwritten:
      return {"unwritten", Level::kWarn,
              "leadership ended before Consul confirmed this result; if the result was not "
              "written, the next leader runs the task again"};
    case Kind::kResultLeftOut:
      return {"result_left_out", Level::kWarn,
              "the result does not fit into a transaction; stored without it"};
    case Kind::kNoExecutor:
      return {"no_executor", Level::kWarn,
              "no executor for this type; its tasks wait: configure one, or \"*\"", "type"};
  }
  return {"", Level::kInfo, ""};
}

void log_fact(const std::string& queue, const core::Fact& fact) {
  FactWords words = words_of(fact.kind);
  // What was never begun is the business of who withdrew it: a hundred thousand by one command.
  if (fact.kind == Kind::kWithdrawn && fact.attempt == 0) words.level = Level::kDebug;
  if (!logs(words.level)) return;
  log(words.level, words.message,
      {{"queue", queue},
       {"task", fact.key},
       {"attempt", fact.attempt != 0 ? std::to_string(fact.attempt) : ""},
       {"token", fact.token != 0 ? std::to_string(fact.token) : ""},
       {words.text_name, fact.text},
       {words.duration_name,
        fact.took > Duration::zero()
            ? format_duration(std::chrono::floor<std::chrono::microseconds>(fact.took))
            : ""}});
}

}  // namespace lictor::runtime
