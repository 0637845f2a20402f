#include "core/tasks/task_state.h"

namespace lictor::core {
namespace {

using S = TaskState;

// Whether a record that was just read can put a key into this state.
bool is_placed(S state) {
  return state == S::kForeign || state == S::kDistant || has_lack(state) || state == S::kUnreadable;
}

}  // namespace

std::string_view name_of(TaskState state) {
  static constexpr std::array<std::string_view, kTaskStates> kNames{
      "unread",   "foreign", "distant", "waiting", "ignored", "unreadable", "claiming",
      "checking", "claimed", "running", "ending",  "burying", "leftover",   "deleted"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(Lack lack) {
  static constexpr std::array<std::string_view, kLacks> kNames{
      "ready",   "scheduled",   "retrying",  "refused",   "blocked",
      "limited", "no executor", "too large", "unnameable"};
  return kNames[static_cast<std::size_t>(lack)];
}

bool may_become(TaskState from, TaskState to) {
  switch (from) {
    case S::kUnread:
    case S::kForeign:
    case S::kDistant:
    case S::kDeleted:
      return is_placed(to) || to == S::kUnread || (to == S::kDeleted && from != S::kDeleted);
    case S::kWaiting:
      return is_placed(to) || to == S::kClaiming || to == S::kEnding || to == S::kBurying ||
             to == S::kDeleted;
    case S::kUnreadable:
      return is_placed(to) || to == S::kBurying || to == S::kDeleted;
    case S::kIgnored:
    case S::kBurying:
      return is_placed(to) || to == S::kDeleted;
    case S::kClaiming:
      return is_placed(to) || to == S::kChecking || to == S::kClaimed || to == S::kDeleted;
    case S::kChecking:
      return is_placed(to) || to == S::kClaimed || to == S::kDeleted;
    case S::kClaimed:
      return is_placed(to) || to == S::kRunning || to == S::kEnding || to == S::kDeleted;
    case S::kRunning:
      return to == S::kEnding || to == S::kLeftover || to == S::kForeign || to == S::kDeleted;
    case S::kEnding:
      return is_placed(to) || to == S::kEnding || to == S::kDeleted;
    case S::kLeftover:
      return to == S::kUnread;
  }
  return false;
}

}  // namespace lictor::core
