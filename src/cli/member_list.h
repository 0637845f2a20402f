#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace lictor::cli {

/// One who takes part, as its entry below the layout's members prefix says. Entries are for people
/// and may be of another version: what is missing is empty.
struct Member {
  std::string node;  ///< the key's last part, if the entry does not tell
  std::string host;
  std::string pid;
  std::string version;
  std::vector<std::string> admin;  ///< URLs of its admin face
  std::string since;
  bool leads = false;
  std::string seen{};  ///< when it last wrote its entry, by its own clock; RFC 3339
};

/// In the order of their keys. Errors: those of Store::list().
[[nodiscard]] Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout);
[[nodiscard]] inline Result<std::vector<Member>> read_members(const Client& client) {
  return read_members(client.store, client.layout);
}

/// What `node` says of itself among the members; nothing: there is no such entry, or it may not be
/// read.
[[nodiscard]] std::optional<Member> read_member(Store& store, const wire::Layout& layout,
                                                const std::string& node);

/// When `node` last wrote its entry among the members: each 10s while it lives. Empty: not known.
[[nodiscard]] std::string last_seen(Store& store, const wire::Layout& layout,
                                    const std::string& node);

/// How a member's admin face can be asked from the host called `own_host`.
struct Reach {
  std::vector<std::string> addresses;  ///< none: it cannot
  std::string why_not;                 ///< then, with the way out
};
[[nodiscard]] Reach reach_of(const Member& member, std::string_view own_host);

/// Asks its admin face, if it can be reached from here: it refuses long before a dead daemon's
/// session ends. Empty: it answers, or cannot be asked. Blocks, 5 s at most.
[[nodiscard]] std::string silence_of(const Member& member);

[[nodiscard]] std::string own_host_name();

}  // namespace lictor::cli
