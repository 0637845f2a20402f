#pragma once

// The operators' switches: the control key of a queue, and the request that a member leads no
// partition of it. The request is a key beside the member's entry; it outlives a restart of the
// daemon.
//
//   control   members/<node>/drain

#include <string>
#include <string_view>

#include "client/store.h"
#include "lictor/client.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "wire/layout.h"

namespace lictor::client {

/// The value of the control key with a step-down request added; other fields stay. `control`: its
/// value now, replaced if it is no JSON object.
[[nodiscard]] std::string with_step_down(std::string_view control, std::string_view id,
                                         std::string_view by, WallTime at);

/// The value with the queue paused; other fields stay.
[[nodiscard]] std::string with_pause(std::string_view control, std::string_view by, WallTime at,
                                     std::string_view reason);
/// The value without the pause, and with a note of who ended it.
[[nodiscard]] std::string with_resume(std::string_view control, std::string_view by, WallTime at);

/// A member of a readable control key that is no switch, or has no effect. Empty if there is none.
[[nodiscard]] std::string switches_without_effect(std::string_view control);

/// The pause in the value. An unreadable value counts as a pause: the leader starts no new tasks
/// until it is corrected.
[[nodiscard]] PauseState read_pause(std::string_view control);

/// "user@host", noted in requests.
[[nodiscard]] std::string who_asks();

[[nodiscard]] std::string drain_key(const wire::Layout& layout, std::string_view node);

/// Errors: those of Store::get().
[[nodiscard]] Result<bool> is_draining(Store& store, const wire::Layout& layout,
                                       const std::string& node);

/// False: the drain was requested already. Errors: those of Store::get() and Store::replace().
[[nodiscard]] Result<bool> begin_drain(Store& store, const wire::Layout& layout,
                                       const std::string& node);
/// False: no drain was requested. Errors: those of begin_drain().
[[nodiscard]] Result<bool> end_drain(Store& store, const wire::Layout& layout,
                                     const std::string& node);

}  // namespace lictor::client
