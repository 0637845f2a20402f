#pragma once

// The commands, a line each, in the order of "lictor --help": those of src/app and of src/cli.
// NAME.cpp there has name, help, options and body, and defines add_NAME().

#include "cli/command.h"

#define LICTOR_COMMANDS(APP, CLI) \
  APP(run)                        \
  CLI(submit)                     \
  CLI(list)                       \
  CLI(show)                       \
  CLI(why)                        \
  CLI(events)                     \
  CLI(stats)                      \
  CLI(top)                        \
  CLI(cancel)                     \
  CLI(retry)                      \
  CLI(dead)                       \
  CLI(schedule)                   \
  CLI(pause)                      \
  CLI(resume)                     \
  CLI(logs)                       \
  CLI(members)                    \
  CLI(leader)                     \
  CLI(drain)                      \
  CLI(undrain)                    \
  APP(check)                      \
  APP(dev)                        \
  CLI(bench)                      \
  APP(try)                        \
  APP(version)

namespace lictor::cli {

#define LICTOR_ELSEWHERE(name)
#define LICTOR_DECLARE(name) void add_##name(Commands& to);
LICTOR_COMMANDS(LICTOR_ELSEWHERE, LICTOR_DECLARE)
#undef LICTOR_DECLARE
#undef LICTOR_ELSEWHERE

}  // namespace lictor::cli
