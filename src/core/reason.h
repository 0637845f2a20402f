#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/id.h"
#include "lictor/time.h"

namespace lictor::core {

/// Why a task is not running, or what else happens to it. Several reasons can hold at once.
struct Reason {
  enum class Kind {
    kUnknownTask,   // no such task is known
    kReading,       // the list of tasks, or whether the queue is paused, is not read yet
    kNotLeading,    // this member does not lead, or cannot prove it now
    kDraining,      // the leader gives up leadership, or stops
    kPaused,        // text: the pauser
    kRunning,       // since, attempt; text: why it is being stopped, if it is
    kClaiming,      // the claim is on its way
    kPrefetched,    // claimed ahead of a free slot, or until it is due
    kSettling,      // its end is being written; text: the last trouble
    kBurying,       // it is on its way to the dead letters
    kTooLarge,      // no transaction can hold its end; text: its size and the limit
    kUnnameable,    // its key is not valid UTF-8, so Consul's JSON can't name it
    kNoExecutor,    // text: the type
    kCannotStart,   // text: why its executor's last job could not be started; until, or
                    // key: the task that is tried next
    kNotDue,        // until
    kBackoff,       // until; text: the last failure
    kRefused,       // until; text: why Consul refused its claim or its end
    kSerial,        // text: the serialKey; key: its holder; count: as of kOrder
    kOrder,         // count: tasks before it, or kMostCounted; key: the next of them
    kConcurrency,   // count: the limit; key: one of the running tasks
    kTypeSlots,     // text: its executor; count: the limit; key: one of the running tasks
    kUnacked,       // count: the limit
    kRate,          // until
    kLastChance,    // one more lost owner makes it a dead letter, so it runs alone; key: waits for
    kStoreTrouble,  // until
    kNext,          // it will be claimed next
  };
  /// Tasks before another are counted up to this, so that the loop of a long queue stays quick.
  static constexpr std::size_t kMostCounted = 5000;

  Kind kind = Kind::kUnknownTask;
  std::string key{};
  std::string text{};
  std::size_t count = 0;
  std::optional<WallTime> until{};
  std::optional<WallTime> since{};
  AttemptId attempt{};
  std::string progress{};  // the attempt's last report, from its executor (exec::Runner::progress)
};

}  // namespace lictor::core
