#pragma once

// Asks the daemons of a queue by their admin APIs.
//
// Consul holds the tasks, and each daemon knows more: why a task waits, which jobs run, what is
// late. So commands and other daemons ask over HTTP. The entry of a member in Consul names the
// addresses of its admin API.
//
//   LeaderClients   locks --> leader of a partition --> its member entry --> AdminClient
//                   for facts that the leader alone knows: why a task waits, its events
//   DaemonClients   the daemon that answered last --> this host's --> the leader --> the others
//                   for questions that any daemon answers, since it asks the leaders itself
//   open_admin()    one member, wherever it is: its logs, its health
//
// A client that may write a member's entry can name another program's address. So a Consul token is
// never sent there. An answer may come from another version: callers check its form.
//
// A daemon on another host that listens on its loopback alone cannot be asked; the error says how
// to change that. The errors distinguish a daemon that takes connections and does not answer, since
// it hangs, from one that takes none, since it is down.
//
// LeaderClients and DaemonClients are for one thread. The clients that all() gives may be asked
// from several threads, each by one (ask_each()).

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/locks.h"
#include "client/queue.h"
#include "cluster/member.h"
#include "lictor/result.h"
#include "net/transport.h"

namespace lictor::cluster {

/// Asks the admin API of a daemon. Never sends a Consul token.
class AdminClient {
 public:
  /// Tries `addresses` in turn, for `limit` altogether. `token`: of the admin APIs
  /// (admin.token_file); empty: none is sent. Errors: kInvalid.
  [[nodiscard]] static Result<AdminClient> open(
      std::vector<std::string> addresses, std::chrono::milliseconds limit = std::chrono::seconds{5},
      std::string token = {});

  /// Returns the answer, whatever its status. Blocks, for the limit at most.
  [[nodiscard]] http::Response ask(std::string target);
  /// The body of a 200 answer. Errors: kUnavailable, no connection; kTimeout, a connection but no
  /// answer; kNotFound (404), kPermissionDenied (401, 403), kFailed.
  [[nodiscard]] Result<std::string> get(std::string target);

 private:
  AdminClient(std::unique_ptr<net::Transport> transport, std::chrono::milliseconds limit,
              std::string token)
      : transport_(std::move(transport)), limit_(limit), token_(std::move(token)) {}

  std::unique_ptr<net::Transport> transport_;
  std::chrono::milliseconds limit_;
  std::string token_;
};

/// Calls `ask` with each number below `count`, several at once, from threads, and waits for all.
void ask_each(std::size_t count, const std::function<void(std::size_t)>& ask);

/// The addresses at which the host called `own_host` can ask the member's admin API. Errors:
/// kFailed, why it cannot, and what to do.
[[nodiscard]] Result<std::vector<std::string>> reachable_addresses(const Member& member,
                                                                   std::string_view own_host);

/// The admin API of the member, asked from this host. Errors: kFailed, why it cannot be asked.
[[nodiscard]] Result<AdminClient> open_admin(const Member& member, std::chrono::milliseconds limit,
                                             const std::string& token = {});

/// The member `node`, and whether it answers within `limit`. Only `node` is set if there is no such
/// member, or the token may not read it.
[[nodiscard]] Member read_member(client::Store& store, const wire::Layout& layout,
                                 const std::string& node,
                                 std::chrono::milliseconds limit = std::chrono::seconds{5});
/// The limit where the answer is only an addition to the output.
inline constexpr std::chrono::milliseconds kGlance{1'000};
/// Finds out whether the members answer, within `limit`. Asks all except `own`, which answers.
void ask_all(std::vector<Member>& members, std::chrono::milliseconds limit = kGlance,
             const std::string& own = {});

/// The admin API of a leader.
struct LeaderClient {
  /// A leader's answer, a JSON object. Errors: nobody leads, or it cannot be asked from here.
  [[nodiscard]] Result<nlohmann::json> get(const std::string& target);

  std::string node;  ///< empty: no member leads
  /// The API, or why it cannot be asked: kNotFound, nobody leads; or Consul's error.
  Result<AdminClient> admin;
};

/// The admin APIs of the leaders of a queue's partitions, as they are now.
class LeaderClients {
 public:
  /// Reads Consul. `token`: of the admin APIs, may be empty.
  explicit LeaderClients(client::Queue queue, std::string token,
                         std::chrono::milliseconds limit = std::chrono::seconds{5});

  /// The leader of the task's partition.
  [[nodiscard]] LeaderClient of(const TaskInfo& task) const {
    return at(locks_.partition_of(task));
  }
  /// The leaders of all partitions, each once; if nobody leads, one client that says so.
  [[nodiscard]] std::vector<LeaderClient> all() const;
  /// A member, which may have led before.
  [[nodiscard]] LeaderClient member(const std::string& node) const;
  [[nodiscard]] const client::Locks& locks() const { return locks_; }

 private:
  [[nodiscard]] LeaderClient at(std::uint32_t partition) const;
  [[nodiscard]] Error not_led(std::uint32_t partition) const;

  const client::Queue queue_;
  const std::string token_;
  const std::chrono::milliseconds limit_;
  client::Locks locks_ = client::Locks::unknown();
  Result<std::vector<Member>> members_;
};

/// The admin APIs of the daemons of a queue. Any of them knows the queue, or asks the leader.
class DaemonClients {
 public:
  /// `token`: of the admin APIs, may be empty. `own`: the addresses of this host's daemon, asked if
  /// Consul does not list the members.
  DaemonClients(client::Queue queue, std::string token, std::vector<std::string> own = {})
      : queue_(std::move(queue)), token_(std::move(token)), own_(std::move(own)) {}

  /// Asks the daemon that answered last. If it fails, asks this host's daemon, then the leader,
  /// then the others, and returns the first answer. Blocks for two seconds a daemon, and for
  /// Consul.
  /// Errors: kFailed, with why each of them could not be asked; kPermissionDenied, one asks for
  /// another token; those of read_members().
  [[nodiscard]] Result<nlohmann::json> get(const std::string& target);
  /// Does the same with daemons whose list was read already, or could not be read.
  [[nodiscard]] Result<nlohmann::json> get(const std::string& target,
                                           const Result<std::vector<Member>>& listed);

 private:
  const client::Queue queue_;
  const std::string token_;
  const std::vector<std::string> own_;
  std::optional<AdminClient> last_;  // the one that answered
};

}  // namespace lictor::cluster
