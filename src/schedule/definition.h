#pragma once

// A recurring task as its record says it (wire/schedule_record).

#include <chrono>
#include <optional>
#include <string>

#include "schedule/ticks.h"

namespace lictor::schedule {

/// Whether a tick makes a task while the schedule's last task waits or runs.
enum class Overlap {
  kSkip,   // no
  kQueue,  // yes: the tasks share a serialKey, so they run one after the other
  kAllow,  // yes
};

struct Definition {
  Schedule schedule;
  std::string rule;  // what its ticks follow from, as it was written; to tell a new rule
  Missed missed;
  Overlap overlap = Overlap::kSkip;
  std::chrono::milliseconds jitter{};
  bool paused = false;
  std::optional<Tick> last_tick;  // what was to be done about the ticks up to it is done
  std::string last_task;          // the id of the task that was made last; empty: none was
  std::string task;               // the template: a JSON object
  // Written by a leader whose configuration has it: all that the configuration says, but for
  // `paused`. Empty: another client's.
  std::string configured{};
};

}  // namespace lictor::schedule
