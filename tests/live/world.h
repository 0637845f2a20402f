#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "consul_agent.h"
#include "journal.h"
#include "kv.h"
#include "lictor_daemon.h"
#include "newer_consul.h"
#include "process.h"
#include "support.h"

namespace lictor::live {

/// One Consul for all tests of this program that do not harm it.
[[nodiscard]] ConsulAgent& shared_consul();
void stop_shared_consul();

/// LICTOR_LIVE_RULES, in the words of Strictness::parse(): daemons and commands then reach their
/// Consul through a NewerConsul of these rules.
[[nodiscard]] Strictness rules_of_this_run();

/// A queue of its own, empty, with a journal of its jobs.
class World {
 public:
  explicit World(ConsulAgent& agent = shared_consul(), std::string root = {},
                 const Strictness& rules = rules_of_this_run());
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  ConsulAgent& consul;

 private:
  std::unique_ptr<NewerConsul> newer_;  // none: they reach the agent itself

 public:
  Kv kv;  ///< straight to the agent, whatever the rules
  TemporaryFolder folder;
  Journal journal;
  const std::string root;  ///< ends in '/'

  /// The port at which daemons and commands reach Consul.
  [[nodiscard]] int port() const { return newer_ ? newer_->port() : consul.port(); }
  [[nodiscard]] std::string address() const {
    return newer_ ? newer_->address() : consul.address();
  }
  /// The requests that the rules refused; only with rules.
  [[nodiscard]] const NewerConsul& newer() const { return *newer_; }

  [[nodiscard]] std::string task_key(const std::string& id) const {
    return root + "default/tasks/" + id;
  }
  [[nodiscard]] std::string dead_key(const std::string& id) const {
    return root + "default/dead/" + id;
  }
  [[nodiscard]] std::string member_key(const LictorDaemon& daemon) const {
    return root + "default/members/" + daemon.node();
  }
  /// Where the admin API of a daemon is that is among the members; empty while it is not.
  [[nodiscard]] std::string admin_url(const LictorDaemon& daemon);
  [[nodiscard]] std::string leader_key() const { return root + "default/leader"; }

  /// A daemon whose every type is a job_recorder; `queue` is laid over its settings. `lock`: the
  /// lock that no two jobs may share, see job_recorder.cpp.
  [[nodiscard]] std::unique_ptr<LictorDaemon> daemon(const std::string& node,
                                                     const json& queue = {},
                                                     const std::string& lock = "queue");
  /// daemon(), which leads when this returns.
  [[nodiscard]] std::unique_ptr<LictorDaemon> leading_daemon(const std::string& node,
                                                             const json& queue = {},
                                                             const std::string& lock = "queue");
  /// daemon(), which could take over when this returns.
  [[nodiscard]] std::unique_ptr<LictorDaemon> standby_daemon(const std::string& node,
                                                             const json& queue = {},
                                                             const std::string& lock = "queue");
  [[nodiscard]] DaemonSettings settings(const std::string& node, const json& queue = {},
                                        const std::string& lock = "queue") const;
  /// settings(), with an admin API, so that commands reach the daemon.
  [[nodiscard]] DaemonSettings settings_with_admin(const std::string& node,
                                                   const json& queue = {}) const;

  /// Writes a task of type "Record".
  void submit(const std::string& id, long time, const json& para = {});
  [[nodiscard]] std::size_t waiting() { return kv.list(root + "default/tasks/").size(); }
  [[nodiscard]] std::size_t dead() { return kv.list(root + "default/dead/").size(); }
  [[nodiscard]] bool all_done() { return waiting() == 0; }
  /// Waits for this attempt to begin, and returns its run.
  Run begun(const std::string& task, int attempt = 1) const;
  Run submit_begun(const std::string& id, long time, const json& para = {}) {
    submit(id, time, para);
    return begun(id);
  }
  /// Submits a task, and returns when no task is left.
  void submit_done(const std::string& id, long time, const json& para = {});
  /// Waits for the task's first run and its child to begin, and returns the run.
  Run begun_with_child(const std::string& task) const;

  /// The node that holds the lock; empty when none does.
  [[nodiscard]] std::string leader();
  [[nodiscard]] std::string leader_session() { return kv.holder(leader_key()); }
  [[nodiscard]] bool leads(const LictorDaemon& daemon) { return leader() == daemon.node(); }
  /// Whether the daemon has a session and could take over.
  [[nodiscard]] bool stands_by(const LictorDaemon& daemon);
};

/// A command line on the queue of `world`, whatever is configured on this host.
[[nodiscard]] std::vector<std::string> command_line(const World& world,
                                                    const std::vector<std::string>& arguments,
                                                    const std::string& consul);
/// `lictor ...` to its end; reaches Consul as the world's daemons do.
Output lictor(const World& world, const std::vector<std::string>& arguments);
/// `lictor ...` with the configuration of `daemon`.
Output lictor(const LictorDaemon& daemon, std::vector<std::string> arguments);
/// Checks that `text` is in the output, which is shown if it is not.
bool says(const Output& output, const std::string& text);
/// Checks that the command ended with this code and says all of this; returns its text.
std::string ends(const Output& output, int exit_code,
                 std::initializer_list<std::string> texts = {});

}  // namespace lictor::live
