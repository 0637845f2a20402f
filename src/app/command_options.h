#pragma once

#include <functional>
#include <map>

#include "app/command_line.h"

namespace CLI {
class App;
}

namespace lictor::app {

/// What each command makes of its arguments once they are parsed. Reads a file or standard input
/// where an argument asks for it. Throws what CLI11 does.
using CommandMakers = std::map<const CLI::App*, std::function<Command()>>;

/// Adds to `app` all commands with their options and help, and the flags that every command takes,
/// which are read into `invocation`.
[[nodiscard]] CommandMakers add_commands(CLI::App& app, Invocation& invocation);

}  // namespace lictor::app
