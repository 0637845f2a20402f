#pragma once

// Signals, for commands that run for long. Three ways, one at a time in a command:
//
//   catch_signals()  a signal only sets a flag: the command ends what it began and reports it
//   LastWords        a signal prints the facts known by now, and ends the command
//   neither          a signal ends the command, as nothing is left half done

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::cli {

enum class SecondSignal { kIgnored, kEndsAtOnce };

/// From now on SIGINT, SIGTERM and SIGHUP only set interrupted(). A signal that is already ignored,
/// as SIGINT is in a shell's background job, stays ignored. Throws std::system_error.
void catch_signals(SecondSignal second);

/// Whether such a signal came. Thread safe.
[[nodiscard]] bool interrupted();

/// A descriptor for poll(): readable once interrupted(). -1 before catch_signals().
[[nodiscard]] int interruption_fd();

/// While it lives, SIGINT, SIGTERM and SIGHUP print `words` (511 bytes at most) to standard error
/// before they end the program. One at a time, and not with catch_signals().
class LastWords {
 public:
  explicit LastWords(std::string_view words);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

/// Ends the process by the signal that came, if any, so that a shell script stops too.
void end_if_interrupted();

/// `transport` prints one line to standard error when Consul takes long to answer.
void report_slow_replies(net::Transport& transport, const std::vector<std::string>& addresses,
                         const Console& console);

}  // namespace lictor::cli
