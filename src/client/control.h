#pragma once

#include <string>
#include <string_view>

#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::client {

/// The value of the control key with a step-down request added; other fields stay. `control`: its
/// value now, replaced if it is no JSON object.
[[nodiscard]] std::string with_step_down(std::string_view control, std::string_view id,
                                         std::string_view by, WallTime at);

/// The same with the queue paused.
[[nodiscard]] std::string with_pause(std::string_view control, std::string_view by, WallTime at,
                                     std::string_view reason);
/// The same without the pause, and with a note of who ended it.
[[nodiscard]] std::string with_resume(std::string_view control, std::string_view by, WallTime at);

/// What in a readable control key is no switch, or has no effect; empty: nothing.
[[nodiscard]] std::string odd_switches(std::string_view control);

/// The pause in the value. An unreadable value counts as a pause: the leader starts no new tasks
/// until it is corrected.
[[nodiscard]] PauseState read_pause(std::string_view control);

/// "user@host", noted in requests.
[[nodiscard]] std::string who_asks();

}  // namespace lictor::client
