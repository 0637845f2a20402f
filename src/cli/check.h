#pragma once

// "lictor check" finds what keeps a host from running tasks, before a daemon is started and while
// one runs. It looks at this host first, then at Consul, then at the queues. Where a layer fails,
// the checks behind it are left out, so that one cause makes one line and not twenty:
//
//   check()             configuration, state_dir, workers, connections, this host's daemon
//     check_consul()    each address by itself --> the first that answers is asked from then on
//     check_service()   the right to register
//     check_queue()     for each queue: rights --(Consul is silent: end)--> session,
//       check_leaders()     who leads, who would, how many partitions
//       (daemons)           what their memory alone knows, by the admin API
//                           then pause, schedules, tasks, dead letters
//
// Nothing is changed: rights to write are found out by transactions that cannot be applied
// (Store::writable()). `serves` means that the configuration is a daemon's: a producer's host needs
// none of the rights that only a daemon needs.
//
// A Report keeps the lines in order. The exit code is that of the first failure, since later ones
// often follow from it. src/app loads the configuration and tries the workers: this folder may know
// neither.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "client/locks.h"
#include "client/store.h"
#include "cluster/diagnosis.h"
#include "core/options.h"

namespace lictor::cli {

/// The configuration that `check` looks at, as src/app has loaded it.
struct CheckOptions {
  struct Queue {
    std::string name;
    wire::Layout layout;
    core::QueueOptions options;
    std::vector<std::string> session_checks;
    Duration hang_timeout{};               ///< of the daemon; zero: switched off
    std::string admin_token{};             ///< for the admin APIs; empty: there is none, or unread
    std::vector<std::string> own_admin{};  ///< addresses of the admin API of this host's daemon
  };
  /// A worker whose process was started.
  struct Worker {
    std::string queue, type;  ///< empty: none could be tried
    Duration ready_after{};
    std::string error;  ///< empty: it was ready
  };
  std::string file;                   ///< of the configuration; empty: there is none
  std::vector<std::string> warnings;  ///< of the configuration
  std::optional<Error> error;         ///< why it could not be loaded; the rest is empty then
  std::optional<Error> daemon_error;  ///< why the daemon cannot use it
  bool serves = false;                ///< it has executors, so a daemon uses it
  bool registers = false;             ///< that daemon registers its service
  std::size_t served_queues = 0;      ///< the daemon's queues, checked here or not
  bool has_admin = false;             ///< that daemon has an admin API
  /// That API asks for its token, except on a unix socket.
  bool asks_for_token = false;
  std::vector<std::string> own_admin{};  ///< its addresses
  std::string state_dir;                 ///< of that daemon
  std::string state_dir_warning;         ///< its fault; empty: none
  std::string state_dir_owner;           ///< its owner if another user; else empty
  std::vector<Worker> workers;           ///< of that daemon
  net::Options consul;
  std::vector<Queue> queues;
  bool strict = false;  ///< warnings count as failures
};
/// `lictor check`: prints what it finds, and returns the exit code.
[[nodiscard]] Result<int> check(Console& console, const CheckOptions& options, bool json);

/// The number of connections to one agent that such a daemon takes, and its effect, in one line.
[[nodiscard]] std::string connections_text(std::size_t queues, bool has_admin);

/// The findings of `check`, in order.
class Report {
 public:
  enum class Status { kOk, kWarn, kFail };
  struct Line {
    Status status;
    std::string name;  ///< "consul", "queue default: rights"
    std::string detail;
    std::string remedy;  ///< empty: none needed
    ErrorCode code;      ///< of a failure
  };

  void ok(std::string name, std::string detail);
  void warn(std::string name, std::string detail, std::string remedy);
  void fail(std::string name, std::string detail, std::string remedy,
            ErrorCode code = ErrorCode::kFailed);
  /// An error fails, a warning warns.
  void add(std::string name, const cluster::Finding& finding);
  /// A failed request, whose message says what to do.
  void fail(std::string name, const Error& error);

  /// Names the queue in the commands that the lines from `first` on suggest.
  void name_queue(std::size_t first, const std::string& queue);
  void repeat_options(const Console& console);

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  /// The code of the first failure: later failures often follow from it.
  [[nodiscard]] std::optional<ErrorCode> first_failure() const;
  [[nodiscard]] bool warned() const;

  [[nodiscard]] Page page() const;
  [[nodiscard]] std::string json() const;

 private:
  std::vector<Line> lines_;
};

/// The address that the other checks ask.
struct Reached {
  std::unique_ptr<net::Transport> transport;  ///< none: no address answers
  std::string node;                           ///< of its agent; empty: not known
};
/// The checks of each address, and of the Consul behind the first that answers.
[[nodiscard]] Reached check_consul(const CheckOptions& options, const Console& console,
                                   Report& report);
/// The checks of the agent at `address`, for a daemon.
void check_agent(const CheckOptions& options, const std::string& address, const Store::Agent& agent,
                 Report& report);

/// The checks of one queue. `agent_node`: the Consul node whose agent is asked; empty: not known.
/// `serves`: a daemon is to run with this token.
void check_queue(Store& store, const CheckOptions::Queue& queue, const std::string& agent_node,
                 bool serves, Report& report);

/// Checks who leads, how soon another daemon would take over, and how many partitions the members
/// ask for. `serves`: as above. Returns the members, if it could read them.
std::optional<std::vector<cluster::Member>> check_leaders(Store& store,
                                                          const CheckOptions::Queue& queue,
                                                          bool serves, const client::Locks& locks,
                                                          Report& report);

/// How soon another daemon leads the queue when its leader dies, hangs, or loses its host, in one
/// line.
[[nodiscard]] std::string takeover_text(const core::QueueOptions& options,
                                        const std::vector<std::string>& session_checks,
                                        Duration hang_timeout);

}  // namespace lictor::cli
