#pragma once

// Finds what is wrong with a queue, and what to do: the one list that `check`, the admin API, `top`
// and the page show. Each function looks at facts of one kind, which its callers have read.
//
//   facts                                        read by       findings (examples)
//   Fleet: locks, members, who answers           check, API    no_leader, member_silent
//   LeaderStatus: figures in a leader's memory   API           overdue, draining, lease_short
//   stored schedules                             check, API    schedule_fault
//   TaskFacts: tasks and dead letters            check, API    dead_letters, orphans, failing
//
// So each kind has one text and one remedy, wherever it is shown, and a program can compare the
// kind. "check" also asks a daemon for the findings that its memory alone gives. It words those
// itself that only its host can have, such as missing rights (src/cli/check_*.cpp).
//
// Nothing here reads Consul or asks a daemon. A fact that could not be read is left out by the
// caller, so that a missing right does not look like a fault of the queue.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/schedules.h"
#include "cluster/succession.h"
#include "lictor/client.h"

namespace lictor::cluster {

struct Finding {
  enum class Severity { kWarning, kError };
  std::string kind;  ///< for programs: "no_leader"; openapi.json has them all
  Severity severity = Severity::kWarning;
  /// One sentence without a full stop; names hosts, partitions and tasks.
  std::string what;
  std::string remedy;  ///< not empty
};
using Findings = std::vector<Finding>;

/// [{"kind", "severity", "what", "remedy"}, ...]. Unless `queue` is empty, commands name it.
[[nodiscard]] nlohmann::ordered_json findings_json(const Findings& findings,
                                                   const std::string& queue);

/// `text` with the options that the commands in it need ("lictor why ID"): -q `queue` in those of
/// one queue, if it is not empty, and `everywhere` (" --config ./lictor.json") also in "check".
[[nodiscard]] std::string with_options(std::string_view text, std::string_view queue,
                                       std::string_view everywhere = {});

/// Finds partitions without a leader, members that may be dead, and hosts that are configured
/// otherwise. `queue`: the queue whose desired numbers of partitions are compared.
[[nodiscard]] Findings diagnose(const Fleet& fleet, const std::string& queue);

/// The status of a leader: queue_json() of the admin API.
struct LeaderStatus {
  std::string node;
  nlohmann::ordered_json status;
};
/// Findings from the leaders' status: about themselves, and about the tasks in their memory.
/// `paused`: no task of the queue may start.
[[nodiscard]] Findings diagnose(const std::vector<LeaderStatus>& leaders, bool paused);

/// Says why nothing runs tasks of this type: "without an executor on host-a"; else empty.
using TypeFault = std::function<std::string(const std::string& type)>;

/// Findings about stored schedules, in their order.
[[nodiscard]] Findings diagnose(const std::vector<client::StoredSchedule>& schedules,
                                const TypeFault& type_fault, WallTime now);

/// Counts the tasks and dead letters of a queue, for findings.
class TaskFacts {
 public:
  void add(const TaskInfo& task);

  /// Counts the failed and lost ones, among dead letters and among tasks that will run again.
  [[nodiscard]] Findings failures() const;
  /// Tasks that never run as they are.
  [[nodiscard]] Findings idle(const TypeFault& type_fault, std::size_t most_bytes) const;

 private:
  std::map<std::string, std::size_t> types_;         // of those that wait
  std::map<std::string, std::size_t> again_, dead_;  // alike failures
  std::size_t orphans_ = 0, waiting_again_ = 0, all_dead_ = 0;
  std::vector<std::string> unnameable_, unreadable_, too_large_;
  std::size_t all_unstarted_ = 0;
  std::map<std::string, std::vector<std::string>> unstarted_;  ///< their ids, by cause
  std::string dead_example_;  // one that may be retried, if there is one
  bool example_is_expired_ = false;
  bool example_is_readable_ = false;
};

/// "a, b, c, ...": the few names that a finding shows.
[[nodiscard]] std::string some(const std::vector<std::string>& names);

}  // namespace lictor::cluster
