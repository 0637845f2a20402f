#pragma once

// Deliberate faults, one at a time, to see that the simulation's checkers find each (tests/sim).
// In what is shipped mutant() is false at compile time, and nothing of them is left.

namespace lictor::core {

// One a line: the faults of the core, then those that tests/sim puts into the store's place.
#define LICTOR_MUTANT_LIST(X)                                                            \
  X(TrustFromReply, "the lease is trusted from when a proof came, not from its sending") \
  X(RenewalProves, "a renewed session counts as a proof of leadership")                  \
  X(IgnoreExpiry, "jobs are not stopped when the lease runs out")                        \
  X(StartUntrusted, "jobs are started although the lease ran out")                       \
  X(IgnoreOverwrite, "a leader key that a stranger wrote to is left as it is")           \
  X(ReleaseWithJobs, "the lock is released while jobs run")                              \
  X(UnknownIsRejected, "a lost reply is taken for a refusal")                            \
  X(UnknownIsApplied, "a lost reply is taken for a success")                             \
  X(StartBeforeClaim, "a job is started before its claim is applied")                    \
  X(NoNonce, "all claims carry the same nonce")                                          \
  X(ForgetOrphan, "a task whose owner is gone is passed over")                           \
  X(DontCountLosses, "lost owners are not counted")                                      \
  X(OnceAgain, "a task that may run at most once is run again after its owner was lost") \
  X(LoseRetry, "a failed task is not queued again")                                      \
  X(RetryForever, "max_attempts is ignored")                                             \
  X(CountUnstarted, "what could not be started counts as an attempt")                    \
  X(FinishTwice, "a finish that was applied is sent again")                              \
  X(LoseRequeued, "what shared a transaction with a refused operation is dropped")       \
  X(IgnoreLane, "serialKey is ignored")                                                  \
  X(ForgetDistant, "a task of much later is not read again when it is near")             \
  X(OrderByKey, "tasks start in the order of their keys")                                \
  X(IgnoreExecuteAt, "a task starts before its executeAt")                               \
  X(IgnorePause, "tasks are claimed and started although the queue is paused")           \
  X(ClaimUnread, "a new leader claims before it has read whether the queue is paused")   \
  X(IgnoreWithdrawal, "a job runs on although its key was deleted")                      \
  X(NoLookAgain, "what is written to a key while its task is being ended is not seen")   \
  X(NoTombstone, "an old listing brings a finished task back")                           \
  X(PrefetchBeyond, "more is claimed than concurrency and prefetch allow")               \
  X(DropFence, "check-session is left out of the transactions")                          \
  X(PlainDelete, "a finish deletes the key whatever it holds")                           \
  X(NoCas, "a claim overwrites the key whatever it holds")                               \
  X(BuryUnchecked, "a dead letter is made without check-index")                          \
  X(WritesOutside, "what a job writes is written although its finish is refused")        \
  X(UnlockUnchecked, "the lock is released without check-index")                         \
  X(GiveBackWithJobs, "a dead daemon's lock is given back while a job of it lives")      \
  X(TrustLockDelay, "a lock that was freed is acquired as soon as Consul lets it")       \
  X(IgnoreClockStep, "a clock that stood still takes nothing from the lease")

// Of src/wire, to be found over the wire layer.
#define LICTOR_WIRE_MUTANT_LIST(X)                                             \
  X(ProofUnread, "?consistent is left out of the read that proves leadership") \
  X(CreateForModify, "CreateIndex is read as ModifyIndex")                     \
  X(FinishUnchecked, "a finish that writes goes without check-index")          \
  X(CheckAfterDelete, "the check of a finish comes after its delete")          \
  X(ValueAsText, "values are not in base64")                                   \
  X(ConflictApplied, "409 is read as 200")                                     \
  X(ErrorRefused, "500 to a write is read as a refusal")                       \
  X(CutRefused, "an answer that is cut short is read as a refusal")            \
  X(HolderUnread, "who holds the lock is not read")                            \
  X(FlagsDropped, "a claim drops the key's flags")                             \
  X(WrongOperation, "the operation after the refused one is taken for it")

enum class Mutant {
  kNone,
#define LICTOR_MUTANT(name, what) k##name,
  LICTOR_MUTANT_LIST(LICTOR_MUTANT) LICTOR_WIRE_MUTANT_LIST(LICTOR_MUTANT)
#undef LICTOR_MUTANT
};

#ifdef LICTOR_MUTANTS
inline Mutant active_mutant = Mutant::kNone;
[[nodiscard]] inline bool mutant(Mutant fault) { return active_mutant == fault; }
#else
[[nodiscard]] constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace lictor::core
