#pragma once

#include <string>
#include <variant>

#include "exec/runner.h"
#include "exec/warden_protocol.h"

namespace lictor::exec {

/// The warden is gone; what it ran was killed.
struct WardenDied {};

/// How a program's attempt ended. Nothing of it runs any more, and all it printed was read.
struct ProcessEnd {
  std::variant<Exited, SpawnFailed, WardenDied> how;
  std::string output_tail;
};

/// What `end` means for the task (DESIGN.md, section 5): exit 0 is done, also after a stop, since
/// the work is; 64, 65 and 78 are permanent (sysexits.h: EX_USAGE, EX_DATAERR, EX_CONFIG); all else
/// is to be tried again, 75 (EX_TEMPFAIL) and a program that could not be run (another host may be
/// able to) included; unless it was we who ended it.
[[nodiscard]] Exit judge(AttemptId attempt, const Program& program, ProcessEnd end);

}  // namespace lictor::exec
