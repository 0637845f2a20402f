#pragma once

#include <string_view>

namespace lictor::cli {

enum class SecondSignal { kIgnored, kEndsAtOnce };

/// From now on a SIGINT or SIGTERM asks the program to come to an end, and breaks nothing off.
/// What is ignored already, as SIGINT is by what a shell starts in the background, stays so.
/// Throws std::system_error.
void catch_signals(SecondSignal second);

/// Whether one came. From any thread.
[[nodiscard]] bool interrupted();

/// To poll: readable once interrupted(). -1: catch_signals() was not called.
[[nodiscard]] int interruption_fd();

/// While one lives, SIGINT and SIGTERM end the program as they do, but not before `words` are on
/// standard error, or the first 511 bytes of them. One at a time, and without catch_signals().
class LastWords {
 public:
  explicit LastWords(std::string_view words);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

/// Ends by the signal that came, if one did, so that a shell breaks off its script as well.
void end_if_interrupted();

}  // namespace lictor::cli
