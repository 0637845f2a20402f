#include "runtime/fact_log.h"

#include <array>

#include "base/host_name.h"
#include "base/time_text.h"
#include "exec/runner.h"
#include "wire/record.h"

namespace lictor::runtime {

using Kind = core::Fact::Kind;

namespace {

// In the order of the enumerators.
constexpr auto kWords = std::to_array<FactWords>({
    {Kind::kCampaigning, "following", Level::kInfo, "another member leads; waiting", "leader"},
    {Kind::kLeading, "leading", Level::kInfo, "leading", "after"},
    {Kind::kLeaseLost, "lock_lost", Level::kWarn, "lost the lock; stopping its jobs"},
    {Kind::kLeaseExpired, "lease_expired", Level::kWarn,
     "the lease ran out without a proof of leadership; stopping its jobs"},
    {Kind::kLeaseRegained, "lease_regained", Level::kInfo, "leadership proved again"},
    {Kind::kLeaderRestored, "leader_key_restored", Level::kWarn,
     "another client overwrote the leader key; restored it, still leading"},
    {Kind::kSteppingDown, "stepping_down", Level::kInfo,
     "asked to step down; running jobs may finish, no new tasks are started", "by"},
    {Kind::kSteppedDown, "stepped_down", Level::kInfo, "stepped down"},
    {Kind::kStopped, "stopped", Level::kInfo, "stopped"},
    {Kind::kSessionCreated, "session_created", Level::kDebug, "session created", "session"},
    {Kind::kSessionLost, "session_lost", Level::kWarn, "the session is gone; creating a new one",
     "session"},
    {Kind::kLockDelay, "lock_delay", Level::kInfo,
     "the last leader was lost; waiting for its lock-delay to end", "error", "left"},
    {Kind::kClaimed, "claimed", Level::kDebug, "claimed"},
    {Kind::kStarted, "started", Level::kInfo, "started", "type", "claimed_for"},
    {Kind::kDone, "done", Level::kInfo, "done", "type"},
    {Kind::kFailed, "failed", Level::kWarn, "failed; trying again", "error", "again_in"},
    {Kind::kNotStarted, "not_started", Level::kWarn,
     "the job cannot be started; its executor pauses, the task goes back to the queue, and no "
     "attempt is counted",
     "error", "again_in"},
    {Kind::kDead, "dead", Level::kError, "becomes a dead letter"},
    {Kind::kGivenBack, "given_back", Level::kInfo, "given back to the queue", "why"},
    {Kind::kLost, "owner_lost", Level::kWarn, "its owner is lost; taking it over", "owner"},
    {Kind::kWithdrawn, "withdrawn", Level::kInfo, "withdrawn"},
    {Kind::kChanged, "rewritten", Level::kDebug, "rewritten"},
    {Kind::kTooLarge, "too_large", Level::kError,
     "too large for one transaction, so it is never claimed; write it smaller or delete it"},
    {Kind::kDenied, "denied", Level::kError,
     "Consul refused for lack of rights (\"lictor check\" names the rule); trying again "
     "in 5s"},
    {Kind::kStoreTrouble, "consul_trouble", Level::kWarn,
     "a request to Consul failed; trying again"},
    {Kind::kPaused, "paused", Level::kInfo, "paused", "by"},
    {Kind::kControlUnreadable, "control_unreadable", Level::kWarn,
     "the control key cannot be read; paused until it is put right (\"lictor resume\")"},
    {Kind::kResumed, "resumed", Level::kInfo, "resumed", "by"},
    {Kind::kNoExecutor, "no_executor", Level::kWarn,
     "no executor for this type; its tasks wait: configure one, or \"*\"", "type"},
    {Kind::kResultLeftOut, "result_left_out", Level::kWarn,
     "the job is done, and its result is left out", "why"},
    {Kind::kUnnameable, "unnameable", Level::kError,
     "its key is not valid UTF-8 and cannot be run; write the task under another key and "
     "delete this one"},
    {Kind::kInFolder, "in_folder", Level::kWarn,
     "a key that ends in \"/\" is a folder and never runs; write the task without the "
     "\"/\", or delete it"},
    {Kind::kUnwritten, "unwritten", Level::kWarn,
     "leadership ended before Consul confirmed this result; if the result was not "
     "written, the next leader runs the task again"},
    {Kind::kDoneLate, "done_late", Level::kWarn, "finished successfully after its timeout", "type"},
    {Kind::kResultVoid, "result_void", Level::kWarn,
     "the task was rewritten while its job ran; this result is discarded, and the task "
     "runs again as it is now"},
    {Kind::kGoesOn, "goes_on", Level::kWarn,
     "the job was told to stop and still runs after kill_grace; it keeps its slot until "
     "it ends",
     "why"},
    {Kind::kTickMade, "tick", Level::kDebug, "made the task of a tick"},
    {Kind::kTickExists, "tick_exists", Level::kWarn,
     "another client wrote a task with the id of this tick's; no other is made"},
    {Kind::kTicksMissed, "ticks_missed", Level::kWarn,
     "these ticks were not made in time, and are skipped"},
    {Kind::kTicksOverlap, "ticks_skipped", Level::kInfo,
     "the schedule's last task waits or runs; these ticks are skipped"},
    {Kind::kScheduleFault, "schedule_fault", Level::kError,
     "this schedule makes no tasks; correct its record"},
    {Kind::kScheduleAhead, "schedule_ahead", Level::kWarn,
     "the lastTick of this schedule is ahead of the clock, which was wrong then or is now; it "
     "makes no task until then, unless the schedule is removed and added again",
     "last_tick", "ahead"},
    {Kind::kScheduleConfigured, "schedule_configured", Level::kInfo,
     "this schedule is as the configuration has it", "what"},
    {Kind::kScheduleTaken, "schedule_taken", Level::kWarn,
     "another client wrote a schedule of this name, so that of the configuration is not used; "
     "remove one of the two"},
});

consteval bool is_in_order() {
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i].kind != static_cast<Kind>(i)) return false;
  }
  return kWords.back().kind == Kind::kScheduleTaken;  // the last one
}
static_assert(is_in_order());

// Whether the fact's key is a schedule's.
bool is_about_schedule(Kind kind) {
  return kind == Kind::kTicksMissed || kind == Kind::kTicksOverlap ||
         kind == Kind::kScheduleFault || kind == Kind::kScheduleAhead ||
         kind == Kind::kScheduleConfigured || kind == Kind::kScheduleTaken;
}

// A host's name changes so rarely that one reading a run is enough.
const std::string& own_host() {
  static const std::string host = host_name();
  return host;
}

}  // namespace

const FactWords& words_of(Kind kind) { return kWords.at(static_cast<std::size_t>(kind)); }

bool is_about_lock(Kind kind) {
  return kind == Kind::kCampaigning || kind == Kind::kLeading || kind == Kind::kLeaseLost ||
         kind == Kind::kLeaseExpired || kind == Kind::kLeaseRegained ||
         kind == Kind::kLeaderRestored || kind == Kind::kSteppedDown || kind == Kind::kLockDelay;
}

bool TroubleLog::is_news(Instant now, const core::Fact& fact) {
  constexpr Duration kQuiet = std::chrono::minutes{1};
  constexpr std::size_t kMost = 100;
  if (fact.kind != Kind::kStoreTrouble || !fact.key.empty()) return true;
  if (quiet_until_.size() >= kMost) quiet_until_.clear();
  // The text ends with what came instead of an answer, which differs each time. But a refusal is
  // reported apart from an absent Consul.
  std::string kind = fact.text.substr(0, fact.text.find(": "));
  for (const std::string_view refusal : {"Permission denied", "ACL not found"}) {
    if (fact.text.find(refusal) != std::string::npos) kind += refusal;
  }
  const auto [at, is_new] = quiet_until_.try_emplace(std::move(kind));
  if (!is_new && now < at->second) return false;
  at->second = now + kQuiet;
  return true;
}

namespace {

// Such a field does nothing, although its producer expects it to: "executeat" runs at once.
void log_misspelt(const std::string& queue, const core::Fact& fact) {
  const std::string fields = wire::misspelt_fields(*fact.task->record);
  if (fields.empty()) return;
  log(Level::kWarn, "fields of this record are not read",
      {{"queue", queue}, {"task", fact.key}, {"fields", fields}});
}

}  // namespace

void log_fact(const std::string& queue, const core::Fact& fact, std::uint32_t partitions) {
  const bool is_first_claim = fact.kind == Kind::kClaimed && fact.task && fact.attempt <= 1;
  if (is_first_claim && fact.task->has_other_fields) log_misspelt(queue, fact);
  const FactWords& words = words_of(fact.kind);
  // A withdrawn task that was never begun interests only its withdrawer: one command may withdraw a
  // hundred thousand. The leader of each of many partitions is in that host's log.
  const bool is_minor = (fact.kind == Kind::kWithdrawn && fact.attempt == 0) ||
                        (fact.kind == Kind::kCampaigning && partitions > 1);
  const Level level = is_minor ? Level::kDebug : words.level;
  if (!logs(level)) return;
  log(level, words.message,
      {{"queue", queue},
       {"partition",
        partitions > 1 && is_about_lock(fact.kind) ? std::to_string(fact.partition) : ""},
       {is_about_schedule(fact.kind) ? "schedule" : "task", fact.key},
       {"ticks", fact.count != 0 ? std::to_string(fact.count) : ""},
       {"attempt", fact.attempt != 0 ? std::to_string(fact.attempt) : ""},
       {"token", fact.token != 0 ? std::to_string(fact.token) : ""},
       {words.text_name, fact.text},
       {words.duration_name,
        fact.took > Duration::zero()
            ? format_duration(std::chrono::floor<std::chrono::microseconds>(fact.took))
            : ""},
       {"host", fact.kind == Kind::kStarted ? own_host() : ""}});
}

void log_started(const exec::Attempt& attempt, pid_t pid) {
  const FactWords& words = words_of(Kind::kStarted);
  if (!logs(words.level)) return;
  log(words.level, words.message,
      {{"queue", attempt.queue},
       {"task", attempt.task_key},
       {"attempt", std::to_string(attempt.number)},
       {"token", std::to_string(attempt.fencing_token)},
       {words.text_name, attempt.task_type},
       {"host", own_host()},
       {"pid", std::to_string(pid)}});
}

}  // namespace lictor::runtime
