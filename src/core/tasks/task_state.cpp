#include "core/tasks/task_state.h"

namespace lictor::core {
namespace {

using S = TaskState;

// What a record that was just read can make of a key.
bool is_placed(S state) {
  return state == S::kForeign || state == S::kDistant || state == S::kScheduled ||
         state == S::kRetrying || state == S::kReady || state == S::kNoExecutor ||
         state == S::kTooLarge || state == S::kUnreadable;
}

}  // namespace

std::string_view name_of(TaskState state) {
  static constexpr std::array<std::string_view, kTaskStates> kNames{
      "unread",     "foreign",  "distant",  "scheduled",   "retrying",  "refused",
      "ready",      "blocked",  "limited",  "no executor", "too large", "unnameable",
      "unreadable", "claiming", "checking", "claimed",     "running",   "stopping",
      "ending",     "burying",  "leftover", "deleted"};
  return kNames[static_cast<std::size_t>(state)];
}

bool may_become(TaskState from, TaskState to) {
  switch (from) {
    case S::kUnread:
      return is_placed(to) || to == S::kUnread || to == S::kUnnameable || to == S::kDeleted;
    case S::kForeign:
    case S::kDistant:
      return is_placed(to) || to == S::kUnread || to == S::kDeleted;
    case S::kScheduled:
    case S::kRetrying:
      return is_placed(to) || to == S::kClaiming || to == S::kBurying || to == S::kDeleted;
    case S::kRefused:
    case S::kNoExecutor:
      return is_placed(to) || to == S::kBurying || to == S::kDeleted;
    case S::kReady:
      return is_placed(to) || to == S::kBlocked || to == S::kLimited || to == S::kClaiming ||
             to == S::kEnding || to == S::kBurying || to == S::kDeleted;
    case S::kBlocked:
    case S::kLimited:
      return is_placed(to) || to == S::kBurying || to == S::kDeleted;
    case S::kTooLarge:
    case S::kUnnameable:
      return is_placed(to) || to == S::kDeleted;
    case S::kUnreadable:
      return is_placed(to) || to == S::kBurying || to == S::kDeleted;
    case S::kClaiming:
      return is_placed(to) || to == S::kChecking || to == S::kClaimed || to == S::kRefused ||
             to == S::kUnnameable || to == S::kDeleted;
    case S::kChecking:
      return is_placed(to) || to == S::kClaimed || to == S::kDeleted;
    case S::kClaimed:
      return is_placed(to) || to == S::kRunning || to == S::kEnding || to == S::kDeleted;
    case S::kRunning:
      return to == S::kStopping || to == S::kEnding || to == S::kLeftover || to == S::kForeign;
    case S::kStopping:
      return to == S::kEnding || to == S::kLeftover || to == S::kForeign || to == S::kDeleted;
    case S::kEnding:
      return is_placed(to) || to == S::kEnding || to == S::kDeleted;
    case S::kBurying:
      return is_placed(to) || to == S::kUnnameable || to == S::kDeleted;
    case S::kLeftover:
      return to == S::kUnread;
    case S::kDeleted:
      return is_placed(to) || to == S::kUnread || to == S::kUnnameable;
  }
  return false;
}

}  // namespace lictor::core
