#pragma once

// The commands of this folder; cli/command_table.h has the order of all.

#include "app/program.h"
#include "cli/command_table.h"

namespace lictor::app {

#define LICTOR_ELSEWHERE(name)
#define LICTOR_DECLARE(name) void add_##name(cli::Commands& to, Program& program);
LICTOR_COMMANDS(LICTOR_DECLARE, LICTOR_ELSEWHERE)
#undef LICTOR_DECLARE
#undef LICTOR_ELSEWHERE

}  // namespace lictor::app
