#pragma once

#include <string_view>

namespace lictor::exec {

/// The warden's log. Writes a line to standard error, or drops it if that would block.
void emit(std::string_view message);
/// Whether emit() writes a JSON object. Set before the warden is started.
inline bool emits_json = false;
/// Whether standard error is systemd's journal, which stamps lines itself. Set likewise
inline bool emits_journal = false;

}  // namespace lictor::exec
