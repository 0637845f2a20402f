#pragma once

// A daemon's account of itself: its entry among the members, the leader key's value, the state of
// its queues for the admin API, and its status for systemd.
//
//   value_ --member_value()--> members/<node>   written with each renewal and each change; read by
//      |                                        commands, and by the other hosts for the weights
//      +----leader_value()---> leader key       without all that a reload may change
//
// The leader key's value is made once, at the daemon's start. The drivers keep it, and the warden
// gets it with each lock, to release the lock of a dead daemon.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "admin/routes.h"
#include "app/config.h"
#include "exec/output_log.h"
#include "lictor/time.h"
#include "runtime/membership.h"
#include "runtime/notifier.h"
#include "runtime/queue_supervisor.h"
#include "worker/pool.h"

namespace lictor::app {

/// Not thread safe.
class MemberEntry {
 public:
  /// `admin_urls`: of its admin API.
  MemberEntry(const Config& config, const std::vector<std::string>& admin_urls);

  [[nodiscard]] std::string member_value() const;
  /// `identity` differs from the one of an earlier start, and so do the claims.
  [[nodiscard]] std::string leader_value(const std::string& identity) const;

  /// Sets how many partitions of `queue` this host asks for. Returns whether that is new.
  bool set_desired_partitions(const std::string& queue, std::uint32_t number);
  /// Sets the nonce of the last claim of `queue` that this daemon has given up: since it lives, the
  /// next leader counts no lost owner (core/tasks/owners.h). Returns whether that is new.
  bool set_given_up(const std::string& queue, const std::string& nonce);
  /// Takes over a new configuration. Returns the changed parts; empty: only this host's settings.
  [[nodiscard]] std::string reloaded(const Config& next);
  /// Shows the error in the entry, so that people on any host learn that this daemon runs with an
  /// older configuration than its file has (cluster/diagnosis.h). The next reloaded() removes it.
  void reload_refused(const std::string& error);

 private:
  void set_configuration(const Config& config);
  void set_member(const char* member, nlohmann::json value);

  nlohmann::json value_;
  std::map<std::string, std::uint32_t> desired_partitions_;  // by queue
  std::map<std::string, std::string> given_up_;              // by queue: a nonce
};

/// The options by which the daemon takes part in all queues of `config`.
[[nodiscard]] runtime::Membership::Options membership_of(const Config& config,
                                                         const MemberEntry& entry);

/// The workers of `queue`, for /v1/status and the metrics.
[[nodiscard]] std::vector<admin::WorkerStatus> workers_of(
    const std::map<std::pair<std::string, std::string>, worker::Figures>& all,
    const std::string& queue);

/// The state of a queue, for the admin API. On the loop's thread.
[[nodiscard]] admin::QueueStatus status_of(const runtime::QueueSupervisor& queue, bool stopping,
                                           std::vector<std::string> types,
                                           const exec::ActiveLogs& logs);

/// Says what a stop of these queues waits for; empty: the stop is over.
[[nodiscard]] std::string stop_waits_for(
    const std::vector<std::unique_ptr<runtime::QueueSupervisor>>& queues);

/// The status for "systemctl status": what the daemon waits for, or which queues it leads.
class ServiceStatus {
 public:
  explicit ServiceStatus(runtime::Notifier& notifier) : notifier_(notifier) {}

  struct Now {
    std::string waits_for{};             ///< empty: nothing
    std::vector<std::string> leading{};  ///< queues
    std::string restart_for{};           ///< settings that need a restart
    bool stopping = false;
  };
  /// Sends the status to the service manager when it has changed. During a long stop, also logs
  /// what the stop waits for.
  void report(Instant now, const Now& status);

 private:
  runtime::Notifier& notifier_;
  std::string notified_;
  Instant log_at_ = Instant::max();
};

}  // namespace lictor::app
