#include "runtime/fact_log.h"

#include "base/time_text.h"
#include "runtime/log.h"

namespace lictor::runtime {
namespace {

using Kind = core::Fact::Kind;

struct Wording {
  Level level;
  const char* message;
};

Wording wording_of(Kind kind) {
  switch (kind) {
    case Kind::kCampaigning:
      return {Level::kInfo, "another member leads; waiting"};
    case Kind::kLeading:
      return {Level::kInfo, "leading"};
    case Kind::kLeaseLost:
      return {Level::kWarn, "the lock is lost; what still runs is stopped"};
    case Kind::kLeaseExpired:
      return {Level::kWarn, "no proof of leadership within the lease; stopping its jobs"};
    case Kind::kLeaseRegained:
      return {Level::kInfo, "leadership is proved again"};
    case Kind::kLeaderRestored:
      return {Level::kWarn,
              "somebody else wrote to the leader key; it names its holder again, who leads on"};
    case Kind::kSteppingDown:
      return {Level::kInfo, "asked to step down; what runs may finish, nothing more is started"};
    case Kind::kSteppedDown:
      return {Level::kInfo, "stepped down"};
    case Kind::kStopped:
      return {Level::kInfo, "stopped"};
    case Kind::kSessionCreated:
      return {Level::kDebug, "session created"};
    case Kind::kSessionLost:
      return {Level::kWarn, "the session is gone; making another"};
    case Kind::kLockDelay:
      return {Level::kInfo, "the last leader was lost; waiting for its lock-delay to end"};
    case Kind::kClaimed:
      return {Level::kDebug, "claimed"};
    case Kind::kStarted:
      return {Level::kDebug, "started"};
    case Kind::kDone:
      return {Level::kInfo, "done"};
    case Kind::kDoneLate:
      return {Level::kWarn, "its job went on after its time-out and ended well, so it is done"};
    case Kind::kResultVoid:
      return {Level::kWarn,
              "the task was rewritten while its job ran: nothing of this run is written, and the "
              "task runs again as it is now"};
    case Kind::kGoesOn:
      return {Level::kWarn,
              "its job was asked to stop, and goes on after kill_grace; it keeps its slot until it "
              "ends"};
    case Kind::kFailed:
      return {Level::kWarn, "failed; trying again"};
    case Kind::kNotStarted:
      return {Level::kWarn,
              "this host cannot start its job; it goes back to the queue, and does not count as an "
              "attempt"};
    case Kind::kDead:
      return {Level::kError, "failed for good; it goes to the dead letters"};
    case Kind::kGivenBack:
      return {Level::kInfo, "it goes back to the queue"};
    case Kind::kLost:
      return {Level::kWarn, "its owner is lost; taking it up again"};
    case Kind::kWithdrawn:
      return {Level::kInfo, "withdrawn"};
    case Kind::kChanged:
      return {Level::kDebug, "rewritten"};
    case Kind::kTooLarge:
      return {Level::kError,
              "too large for one transaction, so it is never claimed; left where it is: write it "
              "smaller or delete it"};
    case Kind::kDenied:
      return {Level::kError,
              "Consul refused for lack of rights (\"lictor check\" names the rule); trying again "
              "in 5s"};
    case Kind::kStoreTrouble:
      return {Level::kWarn, "trouble with Consul; trying again"};
    case Kind::kPaused:
      return {Level::kInfo, "paused"};
    case Kind::kControlUnreadable:
      return {Level::kWarn,
              "the control key cannot be read; paused until it is put right (\"lictor resume\")"};
    case Kind::kResumed:
      return {Level::kInfo, "resumed"};
    case Kind::kUnnameable:
      return {Level::kError,
              "its key is not UTF-8, so that Consul does not tell it; left where it is: write it "
              "under another key"};
    case Kind::kInFolder:
      return {Level::kWarn,
              "a key that ends in \"/\" is a folder, and what it holds is never run; write it "
              "without the \"/\", or delete it"};
    case Kind::kUnwritten:
      return {Level::kWarn,
              "the lead is over before its end is known to be written; if it is not, the next "
              "leader counts it as lost"};
    case Kind::kResultLeftOut:
      return {Level::kWarn, "its result does not fit into a transaction; it is kept without"};
    case Kind::kNoExecutor:
      return {Level::kWarn, "no executor for this type; its tasks wait: add one, or \"*\""};
  }
  return {Level::kInfo, "?"};
}

// What `text` is depends on the kind.
const char* text_name(Kind kind) {
  switch (kind) {
    case Kind::kCampaigning:
      return "leader";
    case Kind::kSessionCreated:
    case Kind::kSessionLost:
      return "session";
    case Kind::kStarted:
    case Kind::kDone:
    case Kind::kDoneLate:
    case Kind::kNoExecutor:
      return "type";
    case Kind::kLost:
      return "owner";
    case Kind::kPaused:
    case Kind::kResumed:
    case Kind::kSteppingDown:
      return "by";
    case Kind::kGoesOn:
      return "why";
    default:
      return "error";
  }
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
       {text_name(fact.kind), fact.text},
       {took, fact.took > Duration::zero()
                  ? format_duration(std::chrono::floor<std::chrono::microseconds>(fact.took))
                  : ""}});
}

}  // namespace lictor::runtime
