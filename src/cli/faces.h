#pragma once

// The admin faces of a queue's daemons, and what only they know.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/members.h"
#include "client/locks.h"
#include "lictor/result.h"

namespace lictor::cli {

/// The admin face of a leader.
struct LeaderFace {
  std::optional<AdminClient> face;  ///< nothing: it cannot be asked
  std::string node;                 ///< empty: no member leads
  std::string why_not;              ///< why it cannot be asked
  /// Then: kNotFound, nobody leads; of the error, if Consul could not be read.
  ErrorCode code = ErrorCode::kFailed;
};

/// The admin faces of the leaders of a queue's partitions. Reads Consul once, when first asked.
class LeaderFaces {
 public:
  /// `client` must outlive this.
  explicit LeaderFaces(const Client& client,
                       std::chrono::milliseconds limit = std::chrono::seconds{5})
      : client_(client), limit_(limit) {}

  /// Of the task's partition.
  [[nodiscard]] LeaderFace& of(const TaskInfo& task);
  /// Of the first partition that a member leads.
  [[nodiscard]] LeaderFace& any();
  /// Of all partitions, each leader once; if nobody leads one that says so. Call it once, and no
  /// other after it.
  [[nodiscard]] std::vector<LeaderFace> take_all();
  /// As they were read.
  [[nodiscard]] const client::Locks& locks() const { return locks_; }

 private:
  void read();
  [[nodiscard]] LeaderFace& at(std::uint32_t partition);
  [[nodiscard]] LeaderFace& first();  // of partition 0, where no member leads

  const Client& client_;
  const std::chrono::milliseconds limit_;
  std::optional<Result<std::vector<Member>>> members_;
  client::Locks locks_ = client::Locks::unknown();
  std::map<std::string, LeaderFace> faces_;  // by the leader's name; of free partitions by number
};

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
/// them, and only the leader knows. Blocks for kGlance a leader at most, and a few requests.
void mark_running(const Client& client, std::vector<TaskInfo>& tasks);

}  // namespace lictor::cli
