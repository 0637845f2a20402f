#pragma once

// An operator's wish that a member leads no partition of the queue: a key beside the member's entry,
// which also outlives a restart of its daemon.
//
//   members/<node>   members/<node>/drain

#include <string>
#include <string_view>

#include "client/store.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::client {

[[nodiscard]] std::string drain_key(const wire::Layout& layout, std::string_view node);

/// Errors: those of Store::get().
[[nodiscard]] Result<bool> is_draining(Store& store, const wire::Layout& layout,
                                       const std::string& node);

/// False: that was asked for already. Errors: those of Store::get() and Store::replace().
[[nodiscard]] Result<bool> begin_drain(Store& store, const wire::Layout& layout,
                                       const std::string& node);
/// False: that was not asked for. Errors: likewise.
[[nodiscard]] Result<bool> end_drain(Store& store, const wire::Layout& layout,
                                     const std::string& node);

}  // namespace lictor::client
