#include "runtime/fact_log.h"

#include "base/time_text.h"
#include "runtime/log.h"

namespace lictor::runtime {
namespace {

using Kind = core::Fact::Kind;

struct Wording {
  Level level;
  const char* message;
  const char* text_name = "error";  // of the field for the fact's text
};

Wording wording_of(Kind kind) {
  switch (kind) {
    case Kind::kCampaigning:
      return {Level::kInfo, "another member leads; waiting", "leader"};
    case Kind::kLeading:
      return {Level::kInfo, "leading"};
    case Kind::kLeaseLost:
      return {Level::kWarn, "lost the lock; stopping its jobs"};
    case Kind::kLeaseExpired:
      return {Level::kWarn, "the lease ran out without a proof of leadership; stopping its jobs"};
    case Kind::kLeaseRegained:
      return {Level::kInfo, "leadership proved again"};
    case Kind::kLeaderRestored:
      return {Level::kWarn, "another client overwrote the leader key; restored it, still leading"};
    case Kind::kSteppingDown:
      return {Level::kInfo, "asked to step down; running jobs may finish, no new tasks are started",
              "by"};
    case Kind::kSteppedDown:
      return {Level::kInfo, "stepped down"};
    case Kind::kStopped:
      return {Level::kInfo, "stopped"};
    case Kind::kSessionCreated:
      return {Level::kDebug, "session created", "session"};
    case Kind::kSessionLost:
      return {Level::kWarn, "the session is gone; creating a new one", "session"};
    case Kind::kLockDelay:
      return {Level::kInfo, "the last leader was lost; waiting for its lock-delay to end"};
    case Kind::kClaimed:
      return {Level::kDebug, "claimed"};
    case Kind::kStarted:
      return {Level::kDebug, "started", "type"};
    case Kind::kDone:
      return {Level::kInfo, "done", "type"};
    case Kind::kDoneLate:
      return {Level::kWarn, "finished successfully after its timeout", "type"};
    case Kind::kResultVoid:
      return {Level::kWarn,
              "the task was rewritten while its job ran; this result is discarded, and the task "
              "runs again as it is now"};
    case Kind::kGoesOn:
      return {Level::kWarn,
              "the job was told to stop and still runs after kill_grace; it keeps its slot until "
              "it ends",
              "why"};
    case Kind::kFailed:
      return {Level::kWarn, "failed; trying again"};
    case Kind::kNotStarted:
      return {Level::kWarn,
              "this host cannot start the job; the task goes back to the queue, and no attempt is "
              "counted"};
    case Kind::kDead:
      return {Level::kError, "becomes a dead letter"};
    case Kind::kGivenBack:
      return {Level::kInfo, "given back to the queue"};
    case Kind::kLost:
      return {Level::kWarn, "its owner is lost; taking it over", "owner"};
    case Kind::kWithdrawn:
      return {Level::kInfo, "withdrawn"};
    case Kind::kChanged:
      return {Level::kDebug, "rewritten"};
    case Kind::kTooLarge:
      return {
          Level::kError,
          "too large for one transaction, so it is never claimed; write it smaller or delete it"};
    case Kind::kDenied:
      return {Level::kError,
              "Consul refused for lack of rights (\"lictor check\" names the rule); trying again "
              "in 5s"};
    case Kind::kStoreTrouble:
      return {Level::kWarn, "a request to Consul failed; trying again"};
    case Kind::kPaused:
      return {Level::kInfo, "paused", "by"};
    case Kind::kControlUnreadable:
      return {Level::kWarn,
              "the control key cannot be read; paused until it is put right (\"lictor resume\")"};
    case Kind::kResumed:
      return {Level::kInfo, "resumed", "by"};
    case Kind::kUnnameable:
      return {Level::kError,
              "its key is not valid UTF-8 and cannot be run; write the task under another key and "
              "delete this one"};
    case Kind::kInFolder:
      return {Level::kWarn,
              "a key that ends in \"/\" is a folder and never runs; write the task without the "
              "\"/\", or delete it"};
    case Kind::kUnwritten:
      return {Level::kWarn,
              "leadership ended before Consul confirmed this result; if the result was not "
              "written, the next leader runs the task again"};
    case Kind::kResultLeftOut:
      return {Level::kWarn, "the result does not fit into a transaction; stored without it"};
    case Kind::kNoExecutor:
      return {Level::kWarn, "no executor for this type; its tasks wait: configure one, or \"*\"",
              "type"};
  }
  return {Level::kInfo, "?"};
}

}  // namespace

void log_fact(const std::string& queue, const core::Fact& fact) {
  Wording wording = wording_of(fact.kind);
  // What was never begun is the business of who withdrew it: a hundred thousand by one command.
  if (fact.kind == Kind::kWithdrawn && fact.attempt == 0) wording.level = Level::kDebug;
  if (!logs(wording.level)) return;
  const bool again = fact.kind == Kind::kFailed || fact.kind == Kind::kNotStarted;
  const char* const took = again ? "again_in" : fact.kind == Kind::kLockDelay ? "left" : "took";
  log(wording.level, wording.message,
      {{"queue", queue},
       {"task", fact.key},
       {"attempt", fact.attempt != 0 ? std::to_string(fact.attempt) : ""},
       {"token", fact.token != 0 ? std::to_string(fact.token) : ""},
       {wording.text_name, fact.text},
       {took, fact.took > Duration::zero()
                  ? format_duration(std::chrono::floor<std::chrono::microseconds>(fact.took))
                  : ""}});
}

}  // namespace lictor::runtime
