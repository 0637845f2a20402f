#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "client/config_parts.h"
#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::cli {

/// Asks the admin face of a member. Never sends a Consul token.
class AdminClient {
 public:
  /// Tries `addresses` in turn, for `limit` altogether. `token`: of the admin faces
  /// (admin.token_file); empty: none is sent. Errors: kInvalid.
  [[nodiscard]] static Result<AdminClient> open(
      std::vector<std::string> addresses, std::chrono::milliseconds limit = std::chrono::seconds{5},
      std::string token = {});

  /// The body of a 200 answer. Blocks, for `wait` and the limit at most. Errors: kUnavailable, no
  /// connection; kTimeout, a connection but no answer; kNotFound (404), kPermissionDenied (401,
  /// 403), kFailed.
  [[nodiscard]] Result<std::string> get(std::string target,
                                        std::chrono::seconds wait = std::chrono::seconds{0});

 private:
  AdminClient(std::unique_ptr<net::Transport> transport, std::chrono::milliseconds limit,
              std::string token)
      : transport_(std::move(transport)), limit_(limit), token_(std::move(token)) {}

  std::unique_ptr<net::Transport> transport_;
  std::chrono::milliseconds limit_;
  std::string token_;
};

/// A member, from its key below the members prefix. The value may be of another version: missing
/// fields are empty.
struct Member {
  std::string node;  ///< from the key, if the value lacks it
  std::string host{}, pid{}, version{};
  std::vector<std::string> admin{};  ///< URLs of its admin face
  std::string since{};
  bool leads = false;
  std::string config{};  ///< digest of its configuration
  client::ConfigParts parts{};
  std::string reload_error{};  ///< why it keeps an older configuration than its file
  std::string seen{};          ///< when it last wrote its entry, by its own clock; RFC 3339
};

/// In the order of their keys. Errors: those of Store::list().
[[nodiscard]] Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout);

/// The member `node`. Nothing: there is none, or the token may not read it.
[[nodiscard]] std::optional<Member> read_member(Store& store, const wire::Layout& layout,
                                                const std::string& node);

/// The leader key. Another version or program may have written its value.
struct Lock {
  std::string session;      ///< empty: nobody holds it
  nlohmann::json value;     ///< an object
  std::uint64_t index = 0;  ///< 0: there is no such key

  /// A field of the value; empty: there is none.
  [[nodiscard]] std::string text(const char* field) const;
  /// Of the leader; empty: nobody leads.
  [[nodiscard]] std::string name() const;
};
[[nodiscard]] Lock lock_of(const std::optional<wire::KvEntry>& entry);
[[nodiscard]] Result<Lock> read_lock(Store& store, const wire::Layout& layout);

/// How a member's admin face can be asked from the host called `own_host`.
struct Reach {
  std::vector<std::string> addresses;  ///< none: it cannot
  std::string why_not;                 ///< then, with the way out
};
[[nodiscard]] Reach reach_of(const Member& member, std::string_view own_host);

/// The admin face of the leader of a queue.
struct LeaderFace {
  std::optional<AdminClient> face;      ///< nothing: it cannot be asked
  std::string node;                     ///< empty: no member leads
  std::string why_not;                  ///< why it cannot be asked
  ErrorCode code = ErrorCode::kFailed;  ///< then; of the error, if Consul could not be read
};
[[nodiscard]] LeaderFace leader_face(const Client& client,
                                     std::chrono::milliseconds limit = std::chrono::seconds{5});
/// The admin faces of the daemons of a queue. Any of them knows the queue, or asks the leader.
class DaemonFaces {
 public:
  /// `token`: of the admin faces, may be empty. `own`: the addresses of this host's daemon, asked
  /// where Consul does not tell the members. The references must outlive this.
  DaemonFaces(Store& store, const wire::Layout& layout, std::string queue, std::string token,
              std::vector<std::string> own = {})
      : store_(store),
        layout_(layout),
        queue_(std::move(queue)),
        token_(std::move(token)),
        own_(std::move(own)) {}

  /// The JSON that the daemon answers that answered last, else the first of: those of this host,
  /// the leader, any other. Blocks, for two seconds a daemon at most, and as long as Consul. Errors:
  /// kFailed, with why each of them could not be asked; those of read_members().
  [[nodiscard]] Result<nlohmann::json> get(const std::string& target);

 private:
  Store& store_;
  const wire::Layout& layout_;
  const std::string queue_, token_;
  const std::vector<std::string> own_;
  std::optional<AdminClient> face_;
};

/// Why the task does not run, by the leader: a JSON list of objects that is not empty. Blocks.
[[nodiscard]] Result<nlohmann::json> ask_why(const Client& client, LeaderFace& leader,
                                             const std::string& id);
/// Marks those of `tasks` that run although their records say that they wait: their producers rewrote
/// them, and only the leader knows. Blocks for kGlance at most and a few requests.
void mark_running(const Client& client, std::vector<TaskInfo>& tasks);

/// Whether a member's admin face answers. A dead daemon's stops long before its session ends.
struct Pulse {
  std::optional<bool> answers;  ///< nothing: it cannot be asked from here
  std::string silence;          ///< if it does not: "its daemon does not answer: ..."
};
/// Blocks, for `limit` at most.
[[nodiscard]] Pulse pulse_of(const Member& member,
                             std::chrono::milliseconds limit = std::chrono::seconds{5});
/// The limit where the answer is only an addition to the output.
inline constexpr std::chrono::milliseconds kGlance{1'000};
/// Asks all, several at once.
[[nodiscard]] std::vector<Pulse> pulses_of(const std::vector<Member>& members);

/// A member writes its entry each 10s; one may be late or lost, and clocks differ.
inline constexpr Duration kSilent = std::chrono::seconds{25};
/// Why the member may be dead: its face does not answer, or it was not seen for kSilent. Follows
/// "<name> leads, but". Empty: no reason.
[[nodiscard]] std::string doubt_of(const Member& member, const Pulse& pulse);
/// The names of the members that campaign: those that give no reason to doubt. Nothing: not known.
using Candidates = std::optional<std::vector<std::string>>;
/// What happens then, when, by the leader's session, and which members may lead next.
[[nodiscard]] std::string if_dead(Store& store, const wire::Layout& layout, const Lock& lock,
                                  const Member& member);
/// The same where the members that may lead next are known.
[[nodiscard]] std::string if_dead(Store& store, const Lock& lock, const Member& member,
                                  const Candidates& others);
/// Nobody holds the lock: who led last, and which members may lead next, when.
[[nodiscard]] std::string if_free(const Lock& lock, const Candidates& candidates);
/// Why no task may start now: nobody leads, or the leader may be dead; with when that ends. Empty:
/// the queue is led. Blocks for twice kGlance at most and a few requests.
[[nodiscard]] std::string lead_trouble(const Client& client);
/// Nobody leads: why, and which members may lead next.
[[nodiscard]] Error nobody_leads(const Client& client, const Lock& lock);

}  // namespace lictor::cli
