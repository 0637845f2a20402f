// Checks a queue from outside: what the token may do, who leads, what the daemons find, and the
// tasks, dead letters and schedules in Consul. src/cluster words the findings that the admin API
// has, too; only those that need this host's configuration or its token's rights are worded here.
//
//   names --> rights --no answer--> end
//               |
//               +--> session right --> leaders --> daemons' findings --> pause --> schedules
//                      --> tasks --> dead letters
//
// The order matters in two places. Without the right to read the tasks, most of the later checks
// would say the same again, so they are left out. And the daemons are asked before the tasks are
// counted, since they know which types have an executor: this host's configuration may be another
// one.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/kv_name.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/check.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/control.h"
#include "client/schedules.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "cluster/admin_client.h"
#include "wire/consul.h"
#include "wire/layout.h"
#include "wire/transaction_plan.h"

namespace lictor::cli {
namespace {

// 100,000 tasks are a listing of 50 MB and half a second (consul.md 11).
constexpr std::size_t kManyTasks = 50'000;
constexpr std::size_t kManyBytes = 50'000'000;

constexpr std::string_view kPolicies =
    "/usr/share/lictor/consul/policy-*.hcl has what each role needs";

// A key or prefix of the queue, and the right that the daemon needs.
struct KeyRight {
  std::string name;
  std::string key;
  bool daemon_writes;

  // The rule as consul/policy-daemon.hcl has it.
  [[nodiscard]] std::string rule() const {
    return (key.ends_with('/') ? "key_prefix \"" : "key \"") + key +
           (daemon_writes ? R"(" { policy = "write" })" : R"(" { policy = "read" })");
  }
};

// Lists the rights that consul/policy-daemon.hcl grants, as far as this configuration needs them.
std::vector<KeyRight> places_of(const wire::Layout& layout, const core::QueueOptions& options,
                                bool partitioned) {
  std::vector<KeyRight> places{
      {"tasks", layout.tasks_prefix, true},         {"dead letters", layout.dead_prefix, true},
      {"leader", layout.leader_key, true},          {"members", layout.members_prefix, true},
      {"schedules", layout.schedules_prefix, true}, {"control", layout.control_key, false}};
  if (options.history) places.push_back({"history", layout.done_prefix, true});
  if (options.rate_limit) places.push_back({"rate limit", layout.rate_key, true});
  places.push_back({"number of partitions", layout.partitions_key, partitioned});
  if (partitioned) {
    places.push_back({"partitions' locks", layout.leader_key + '/', true});
  }
  return places;
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

cluster::Finding schedule_warning(const std::string& schedule, const std::string& what,
                                  std::string remedy) {
  return {"", cluster::Finding::Severity::kWarning, "schedule \"" + schedule + "\": " + what,
          std::move(remedy)};
}

// Finds configured schedules that Consul lacks, or whose names another client has taken: the leader
// writes configured schedules, but leaves alone a record that another client wrote.
cluster::Findings check_configured(const CheckOptions::Queue& queue,
                                   const client::Schedules::Listed& listed, bool serves) {
  cluster::Findings found;
  for (const auto& configured : queue.options.schedules) {
    const std::string& name = configured.first;
    const auto stored =
        std::find_if(listed.schedules.begin(), listed.schedules.end(),
                     [&](const client::StoredSchedule& each) { return each.name == name; });
    if (stored == listed.schedules.end()) {
      if (!serves || listed.hidden) continue;
      found.push_back(schedule_warning(
          name, "the configuration has it, and Consul does not",
          "the leader writes it within seconds; if it stays away, the leader runs with another "
          "configuration: \"lictor members\" tells, \"systemctl reload lictor\" reads it again"));
    } else if (!stored->definition || stored->definition->configured.empty()) {
      found.push_back(schedule_warning(
          name,
          "the configuration has a schedule of this name, which is not used: another "
          "client wrote " +
              stored->key,
          fmt::format("\"lictor schedule remove {}\" lets the leader write that of the "
                      "configuration; else take it out of the configuration",
                      shell_argument(name))));
    }
  }
  return found;
}

class QueueCheck {
 public:
  QueueCheck(Store& store, const CheckOptions::Queue& queue, std::string agent_node, bool serves,
             Report& report)
      : store_(store),
        queue_(queue),
        agent_node_(std::move(agent_node)),
        serves_(serves),
        report_(report) {}

  void run() {
    const auto count = client::read_partition_count(store_, queue_.layout);
    if (count) count_ = *count;
    check_names();
    if (!check_rights()) return;
    check_session_right();
    if (!count && count.error().code == ErrorCode::kInvalid) {
      // A bad record in Consul is no fault of the usage or the configuration.
      report_.fail(name("partitions"), Error{ErrorCode::kFailed, count.error().message});
    }
    const client::Locks locks = client::locks_if_known(client::read_locks(store_, queue_.layout));
    ask_daemons(check_leaders(store_, queue_, serves_, locks, report_));
    check_pause();
    check_schedules();
    check_tasks(locks);
    check_dead_letters();
  }

 private:
  [[nodiscard]] std::string name(std::string_view what) const {
    return queue_.name + ": " + std::string{what};
  }

  void check_names() {
    for (const std::string& key :
         {queue_.layout.tasks_prefix, queue_.layout.leader_key, queue_.layout.dead_prefix,
          queue_.layout.done_prefix, queue_.layout.control_key, queue_.layout.members_prefix,
          queue_.layout.schedules_prefix}) {
      if (fits_path(key)) continue;
      return report_.warn(
          name("names"),
          "Consul 1.21.5 and newer refuse " + printable(key) + ", so nobody leads there",
          R"(call root, queue and paths by letters, digits and ",_./-" before the )"
          "upgrade");
    }
  }

  // Reads each key to find the rights to read, and asks for all rights to write at once. False:
  // Consul does not answer, so the other checks are skipped.
  bool check_rights() {
    std::vector<std::string> keys, readable, unreadable, writable;
    std::vector<std::string> missing;  // rules, for the daemon
    const std::vector<KeyRight> places =
        places_of(queue_.layout, queue_.options, count_ > 1 || desired_partitions() > 1);
    std::vector<bool> may_read;
    for (const KeyRight& place : places) {
      keys.push_back(place.key);
      const auto entry = store_.get(place.key);
      may_read.push_back(entry.has_value());
      if (!entry && entry.error().code != ErrorCode::kPermissionDenied) {
        report_.fail(name("rights"), entry.error());
        return false;
      }
      (entry ? readable : unreadable).push_back(place.name);
    }
    const auto may_write = store_.writable(keys);
    if (!may_write) {
      report_.fail(name("rights"), may_write.error());
      return false;
    }
    may_lead_ = true;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if ((*may_write)[i]) writable.push_back(places[i].name);
      if (places[i].daemon_writes ? (*may_write)[i] : may_read[i]) continue;
      missing.push_back(places[i].rule());
      if (places[i].daemon_writes) may_lead_ = false;
    }
    const std::string detail =
        fmt::format("the token reads {}; writes {}", joined(readable), joined(writable));
    tasks_readable_ = may_read.front();
    if (serves_ && !missing.empty()) {
      report_.fail(name("rights"), detail,
                   fmt::format("the daemon needs: {}; {}; for a token that only reads: lictor "
                               "check --role reader",
                               joined(missing), kPolicies),
                   ErrorCode::kPermissionDenied);
    } else if (!tasks_readable_) {
      report_.fail(name("rights"), detail, std::string{kPolicies}, ErrorCode::kPermissionDenied);
    } else if (!unreadable.empty()) {
      report_.warn(
          name("rights"), detail,
          fmt::format("enough to submit; not for the daemon, nor for all commands; {}", kPolicies));
    } else {
      report_.ok(name("rights"), detail + (missing.empty() ? "" : "; not enough for the daemon"));
    }
    return true;
  }

  // The session belongs to the node of the agent that is asked, so the right must be for that node.
  void check_session_right() {
    if (!may_lead_ && !serves_) return;  // irrelevant then
    if (agent_node_.empty()) {
      return report_.warn(
          name("session"),
          "cannot check whether the token may create sessions: the agent's node is unknown",
          R"(the daemon needs: session "NODE" { policy = "write" }; for this check the token needs: )"
          R"(agent "NODE" { policy = "read" }; NODE is the node of the Consul agent)");
    }
    const auto may = store_.may_write("session", agent_node_);
    if (!may) return;  // this Consul cannot be asked
    const std::string detail =
        fmt::format("the token may {}hold sessions of node {}", *may ? "" : "not ", agent_node_);
    if (*may) return report_.ok(name("session"), detail);
    if (!serves_) return report_.ok(name("session"), detail + "; only a daemon needs it");
    report_.fail(name("session"), detail,
                 "the daemon needs: session \"" + agent_node_ + R"(" { policy = "write" })",
                 ErrorCode::kPermissionDenied);
  }

  // The number of partitions that a daemon with this configuration asks for.
  [[nodiscard]] std::uint32_t desired_partitions() const {
    return serves_ ? queue_.options.partitions : 1;
  }

  // Shows the findings that only the daemons know; check_queue() finds the others itself. Also
  // learns the types that the daemons run. A daemon that cannot be asked is no failure: it may not
  // be up yet, or listen on its loopback alone.
  void ask_daemons(const std::optional<std::vector<cluster::Member>>& members) {
    if (!tasks_readable_) return;
    static constexpr std::array<std::string_view, 4> kOwn{"draining", "output_lost", "overdue",
                                                          "lease_short"};
    cluster::DaemonClients daemons{
        {store_, queue_.name, queue_.layout}, queue_.admin_token, queue_.own_admin};
    const std::string target = "/v1/queues?queue=" + wire::query_value(queue_.name);
    const auto answer = members ? daemons.get(target, *members) : daemons.get(target);
    if (!answer && answer.error().code == ErrorCode::kPermissionDenied) {
      return report_.warn(name("daemons"),
                          "their findings cannot be had: " + answer.error().message,
                          "what only a daemon knows, such as jobs that hang or a full disk, is not "
                          "checked");
    }
    if (!answer) {
      return report_.ok(name("daemons"),
                        "no daemon could be asked for its findings: " + answer.error().message);
    }
    const auto queues =
        answer->is_object() ? answer->value("queues", nlohmann::json{}) : nlohmann::json{};
    if (!queues.is_array() || queues.empty() || !queues[0].is_object()) return;
    for (const auto& finding : json_member(queues[0], "findings")) {
      const std::string kind = text_of(finding, "kind");
      if (std::find(kOwn.begin(), kOwn.end(), kind) == kOwn.end()) continue;
      report_.warn(name("daemons"), text_of(finding, "what"), text_of(finding, "remedy"));
    }
    const nlohmann::json& types = json_member(queues[0], "types");
    if (types.is_array()) daemon_types_.emplace();
    for (const auto& type : types) {
      if (daemon_types_ && type.is_string()) daemon_types_->insert(type.get<std::string>());
    }
    const bool leader_answers = queues[0].contains("status") && !queues[0]["status"].is_null();
    daemon_ = text_of(leader_answers ? queues[0] : *answer, leader_answers ? "leader" : "node");
    if (daemon_.empty()) daemon_ = "a leader";  // of several
    check_own_types();
  }

  // Reports executors of the checked file that the daemons don't know: the file was not installed
  // there, or not reloaded.
  void check_own_types() {
    if (!serves_ || !daemon_types_) return;
    std::vector<std::string> lacking;
    for (const auto& [type, policy] : queue_.options.types) {
      if (!daemon_types_->contains(type)) lacking.push_back('"' + excerpt(type) + '"');
    }
    if (queue_.options.any_type && !daemon_types_->contains("*")) lacking.emplace_back("\"*\"");
    if (lacking.empty()) return;
    report_.warn(name("executors"),
                 daemon_ + " lacks what this configuration has: " + cluster::some(lacking),
                 "install this file there, then: systemctl reload lictor");
  }

  // A control key that cannot be read pauses the queue: that is the safe reading of a mistyped
  // switch.
  void check_pause() {
    if (!tasks_readable_) return;
    const auto control = store_.get(queue_.layout.control_key);
    if (!control || !*control) return;
    if (const std::string fault = wire::control_fault((*control)->value); !fault.empty()) {
      report_.warn(name("control"),
                   fmt::format("nothing is started, since {} cannot be read: {}",
                               queue_.layout.control_key, fault),
                   "run \"lictor resume\" or \"lictor pause\" to correct it");
      return;
    }
    if (const std::string no_effect = client::switches_without_effect((*control)->value);
        !no_effect.empty()) {
      report_.warn(name("control"), queue_.layout.control_key + ": " + no_effect,
                   "nothing acts on it; use \"lictor pause\" and \"lictor leader --step-down\"");
    }
    const PauseState state = client::read_pause((*control)->value);
    if (!state.paused) return;
    report_.warn(name("pause"), "the queue is " + pause_text(state),
                 "nothing is started until \"lictor resume\"");
  }

  // Uses the types of the daemons if one has answered, else this configuration's, if a daemon uses
  // it.
  [[nodiscard]] bool nothing_runs(const std::string& type) const {
    if (daemon_types_) return !daemon_types_->contains("*") && !daemon_types_->contains(type);
    const core::QueueOptions& options = queue_.options;
    return serves_ && !options.any_type && !options.types.contains(type);
  }
  [[nodiscard]] cluster::TypeFault type_fault() const {
    return [this](const std::string& type) -> std::string {
      if (!nothing_runs(type)) return {};
      return daemon_types_ ? "without an executor on " + daemon_
                           : "without an executor here, unless a program of your own registers it";
    };
  }

  void check_schedules() {
    constexpr std::size_t kNamed = 10;  // at most so many get a line of their own
    if (!tasks_readable_) return;
    const auto listed = client::Schedules(store_, queue_.layout).list();
    if (!listed) return;  // check_rights() reports it
    cluster::Findings found = check_configured(queue_, *listed, serves_);
    for (cluster::Finding& each : cluster::diagnose(listed->schedules, type_fault(), wall_now())) {
      found.push_back(std::move(each));
    }
    for (std::size_t i = 0; i < std::min(found.size(), kNamed); ++i) {
      report_.add(name("schedules"), found[i]);
    }
    if (found.size() > kNamed) {
      report_.warn(name("schedules"), fmt::format("{} more like these", found.size() - kNamed),
                   "\"lictor schedule list\" shows them");
    }
    if (found.empty() && !listed->schedules.empty()) {
      report_.ok(name("schedules"), counted(listed->schedules.size(), "schedule"));
    }
  }

  // Reads all tasks once, for the counts and for the findings that need their records.
  void check_tasks(const client::Locks& locks) {
    if (!tasks_readable_) return;
    auto listed = store_.list(queue_.layout.tasks_prefix);
    if (!listed) return report_.fail(name("tasks"), listed.error());
    std::map<TaskState, std::size_t> counts;
    std::vector<std::string> folders;
    std::size_t total = 0, bytes = 0;
    const WallTime now = wall_now();
    std::vector<TaskInfo> tasks;
    for (wire::KvEntry& entry : listed->entries) {
      if (!queue_.layout.task_id(entry.key)) {
        if (!entry.value.empty()) folders.push_back(entry.key);
        continue;
      }
      ++total;
      bytes += entry.value.size();
      tasks.push_back(client::view_task(queue_.layout, std::move(entry), locks, now));
    }
    client::mark_unnameable(store_, tasks);
    for (const TaskInfo& task : tasks) {
      ++counts[task.state];
      facts_.add(task);
    }
    std::string detail = counted(total, "task") + " of " + byte_text(bytes);
    for (const TaskState state :
         {TaskState::kRunning, TaskState::kOrphan, TaskState::kWaiting, TaskState::kScheduled}) {
      const std::size_t count = counts[state];
      if (count != 0) detail += fmt::format(", {} {}", count, client::state_text(state));
    }
    if (listed->hidden) detail += "; some may be hidden from this token";
    if (total > kManyTasks || bytes > kManyBytes) {
      report_.warn(name("tasks"), detail,
                   "each new leader reads them all; split them over several queues");
    } else {
      report_.ok(name("tasks"), detail);
    }
    if (!folders.empty()) {
      report_.warn(
          name("tasks"),
          "keys that end in \"/\" are folders, and these hold a value: " + cluster::some(folders),
          "they are never run; write the tasks without the \"/\", or delete the keys");
    }
    const auto limit = wire::record_limit(queue_.layout, queue_.layout.tasks_prefix);
    for (const cluster::Finding& finding : facts_.idle(type_fault(), limit)) {
      report_.add(name("tasks"), finding);
    }
  }

  // Failures that will be retried are no warning: every queue has some.
  void check_dead_letters() {
    const auto listed = store_.list(queue_.layout.dead_prefix);
    std::size_t dead = 0;
    for (const wire::KvEntry& entry : listed ? listed->entries : std::vector<wire::KvEntry>{}) {
      if (entry.key.ends_with('/')) continue;
      facts_.add(client::view_dead_letter(queue_.layout, entry));
      ++dead;
    }
    if (listed && dead == 0) report_.ok(name("dead"), "no dead letters");
    for (const cluster::Finding& finding : facts_.failures()) {
      if (finding.kind == "failing") {  // every queue has them
        report_.ok(name("tasks"), finding.what + "; " + finding.remedy);
      } else {
        report_.add(name(finding.kind == "dead_letters" ? "dead" : "tasks"), finding);
      }
    }
  }

  Store& store_;
  const CheckOptions::Queue& queue_;
  const std::string agent_node_;
  const bool serves_;
  std::uint32_t count_ = 1;  // of partitions
  Report& report_;
  std::string daemon_;                                 // the leader, else the daemon that was asked
  std::optional<std::set<std::string>> daemon_types_;  // types with an executor
  bool may_lead_ = false;
  bool tasks_readable_ = false;
  cluster::TaskFacts facts_;
};

}  // namespace

void check_queue(Store& store, const CheckOptions::Queue& queue, const std::string& agent_node,
                 bool serves, Report& report) {
  QueueCheck{store, queue, agent_node, serves, report}.run();
}

}  // namespace lictor::cli
