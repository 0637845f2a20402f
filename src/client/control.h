#pragma once

#include <string>
#include <string_view>

#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"

namespace lictor::client {

/// The value of the control key with a request to step down in it, its other fields as they are.
/// `control` is what it holds now; empty: nothing. What is no JSON object is replaced.
[[nodiscard]] std::string with_step_down(std::string_view control, std::string_view id,
                                         std::string_view by, WallTime at);

/// The same with the queue paused.
[[nodiscard]] std::string with_pause(std::string_view control, std::string_view by, WallTime at,
                                     std::string_view reason);
/// The same without the pause, and with a trace of who ended it.
[[nodiscard]] std::string with_resume(std::string_view control, std::string_view by, WallTime at);

/// What in a control key that can be read is no switch, or has a form that nothing acts on, in
/// words; empty: nothing.
[[nodiscard]] std::string odd_switches(std::string_view control);

/// What the value says of a pause. What cannot be read is one: a leader starts nothing until it is
/// put right.
[[nodiscard]] PauseState read_pause(std::string_view control);

/// "user@host", for the trace that an operator's request leaves.
[[nodiscard]] std::string who_asks();

}  // namespace lictor::client
