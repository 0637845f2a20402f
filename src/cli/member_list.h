#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/admin_client.h"
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

/// How a member's admin face can be asked from the host called `own_host`.
struct Reach {
  std::vector<std::string> addresses;  ///< none: it cannot
  std::string why_not;                 ///< then, with the way out
};
[[nodiscard]] Reach reach_of(const Member& member, std::string_view own_host);

/// The admin face of the leader of a queue.
struct LeaderFace {
  std::optional<AdminClient> face;  ///< nothing: it cannot be asked
  std::string node;                 ///< empty: no member leads
  std::string why_not;              ///< why it cannot be asked
};
[[nodiscard]] LeaderFace leader_face(const Client& client,
                                     std::chrono::milliseconds limit = std::chrono::seconds{5});
/// Why the task does not run, by the leader: a JSON list of objects that is not empty. Blocks.
[[nodiscard]] Result<nlohmann::json> ask_why(const Client& client, LeaderFace& leader,
                                             const std::string& id);
/// Marks those of `tasks` that run although their records say that they wait: the producer rewrote
/// them meanwhile, and the leader alone knows. Blocks, for kGlance at most and a few requests.
void mark_running(const Client& client, std::vector<TaskInfo>& tasks);

/// Whether a member's admin face answers: a dead daemon's refuses long before its session ends.
struct Pulse {
  std::optional<bool> answers;  ///< nothing: it cannot be asked from here
  std::string silence;          ///< if it does not: "its daemon does not answer: ..."
};
/// Blocks, for `limit` at most.
[[nodiscard]] Pulse pulse_of(const Member& member,
                             std::chrono::milliseconds limit = std::chrono::seconds{5});
/// What a command waits for where the answer is a word beside what it was asked for.
inline constexpr std::chrono::milliseconds kGlance{1'000};
/// Of each, several asked at once. Blocks, for kGlance at most where all answer or refuse, or are
/// few.
[[nodiscard]] std::vector<Pulse> pulses_of(const std::vector<Member>& members);

/// A member writes its entry each 10s; one may be late or lost, and clocks differ.
inline constexpr Duration kSilent = std::chrono::seconds{25};
/// What speaks against its being alive: that its face is silent, and that it has not been seen for
/// kSilent. To follow its name and "leads, but". Empty: nothing.
[[nodiscard]] std::string doubt_of(const Member& member, const Pulse& pulse);
/// What becomes of a leader of whom there is doubt.
inline constexpr std::string_view kIfDead =
    "it may be dead, frozen or cut off; another daemon takes the lead within 1s if the daemon "
    "died, within hang_timeout + 1s if it hangs, after session_ttl and lock_delay if its host is "
    "gone";

}  // namespace lictor::cli
