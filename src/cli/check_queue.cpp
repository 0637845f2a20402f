#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/check_report.h"
#include "cli/listing.h"
#include "cli/member_list.h"
#include "client/control.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "wire/consul.h"
#include "wire/transaction_plan.h"

namespace lictor::cli {
namespace {

// 100,000 tasks are a listing of 50 MB and half a second (CONSUL-FACTS.md 11).
constexpr std::size_t kManyTasks = 50'000;
constexpr std::size_t kManyBytes = 50'000'000;
constexpr std::size_t kNamed = 3;  // at most so many tasks are named in a finding

constexpr std::string_view kPolicies = "see consul/policy-*.hcl for what each role needs";

// A key or prefix of the queue, and the right that the daemon needs.
struct Place {
  std::string name;
  std::string key;
  bool daemon_writes;

  // As consul/policy-daemon.hcl has it.
  [[nodiscard]] std::string rule() const {
    return (key.ends_with('/') ? "key_prefix \"" : "key \"") + key +
           (daemon_writes ? R"(" { policy = "write" })" : R"(" { policy = "read" })");
  }
};

std::vector<Place> places_of(const wire::Layout& layout, bool keeps_history) {
  std::vector<Place> places{{"tasks", layout.tasks_prefix, true},
                            {"dead letters", layout.dead_prefix, true},
                            {"leader", layout.leader_key, true},
                            {"members", layout.members_prefix, true},
                            {"control", layout.control_key, false}};
  if (keeps_history) places.push_back({"history", layout.done_prefix, true});
  return places;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "nothing" : text;
}

std::string some(const std::vector<std::string>& ids) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ids.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + ids[i];
  }
  return ids.size() > kNamed ? text + ", ..." : text;
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
    if (!check_rights()) return;
    check_session_right();
    report_.ok(name("takeover"),
               takeover_text(queue_.options, queue_.session_checks, queue_.hang_timeout));
    const client::Leader leader = check_leader();
    check_pause();
    check_tasks(leader);
    check_dead_letters();
  }

 private:
  [[nodiscard]] std::string name(std::string_view what) const {
    return queue_.name + ": " + std::string{what};
  }

  // False: Consul does not answer, so skip the other checks.
  bool check_rights() {
    std::vector<std::string> readable;
    std::vector<std::string> unreadable;
    std::vector<std::string> keys;
    const std::vector<Place> places = places_of(queue_.layout, queue_.options.history.has_value());
    std::vector<bool> may_read;
    for (const Place& place : places) {
      keys.push_back(place.key);
      const auto entry = store_.get(place.key);
      may_read.push_back(entry.has_value());
      if (entry) {
        readable.push_back(place.name);
      } else if (entry.error().code == ErrorCode::kPermissionDenied) {
        unreadable.push_back(place.name);
      } else {
        report_.fail(name("rights"), entry.error());
        return false;
      }
    }
    const auto may = store_.writable(keys);
    if (!may) {
      report_.fail(name("rights"), may.error());
      return false;
    }
    std::vector<std::string> writable;
    std::vector<std::string> missing;  // rules, for the daemon
    may_lead_ = true;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if ((*may)[i]) writable.push_back(places[i].name);
      const bool enough = places[i].daemon_writes ? (*may)[i] : may_read[i];
      if (!enough) missing.push_back(places[i].rule());
      if (!enough && places[i].daemon_writes) may_lead_ = false;
    }
    const std::string detail =
        "the token reads " + joined(readable) + "; writes " + joined(writable);
    tasks_readable_ = !readable.empty() && readable.front() == places.front().name;
    if (serves_ && !missing.empty()) {
      report_.fail(name("rights"), detail,
                   "the daemon needs: " + joined(missing) + "; " + std::string{kPolicies},
                   ErrorCode::kPermissionDenied);
    } else if (!tasks_readable_) {
      report_.fail(name("rights"), detail, std::string{kPolicies}, ErrorCode::kPermissionDenied);
    } else if (!unreadable.empty()) {
      report_.warn(
          name("rights"), detail,
          "enough to submit; not for the daemon, nor for all commands; " + std::string{kPolicies});
    } else {
      report_.ok(name("rights"), detail + (missing.empty() ? "" : "; not enough for the daemon"));
    }
    return true;
  }

  void check_session_right() {
    if (!may_lead_) return;  // irrelevant then
    if (agent_node_.empty()) {
      return report_.warn(
          name("session"),
          "cannot check whether the token may create sessions: the agent's node is unknown",
          "to have this checked, the token needs: agent \"<the agent's node>\" { "
          "policy = \"read\" }");
    }
    const auto may = store_.may_write("session", agent_node_);
    if (!may) return;  // this Consul cannot be asked
    if (*may)
      return report_.ok(name("session"), "the token may hold sessions of node " + agent_node_);
    const std::string remedy =
        "the daemon needs: session \"" + agent_node_ + R"(" { policy = "write" })";
    const std::string detail = "the token may not hold sessions of node " + agent_node_;
    if (!serves_) return report_.ok(name("session"), detail + "; only a daemon needs it");
    report_.fail(name("session"), detail, remedy, ErrorCode::kPermissionDenied);
  }

  // Nobody leads.
  void check_who_waits() {
    std::vector<std::string> up;
    const auto members = read_members(store_, queue_.layout);
    for (const Member& member : members.value_or(std::vector<Member>{})) {
      const auto seen = parse_rfc3339(member.seen);
      if (seen && wall_now() - *seen <= kSilent) up.push_back(member.node);
    }
    if (up.empty()) {
      return report_.warn(name("leader"), "nobody leads: no tasks are run",
                          "start a daemon (\"lictor run\"); if one is up, its log says what it "
                          "waits for");
    }
    report_.warn(name("leader"), "nobody leads now; up and waiting for the lead: " + some(up),
                 "after a crash of the last leader they wait out its lock-delay; the one that "
                 "stepped down leaves the lead to others for 10s: their logs say which");
  }

  client::Leader check_leader() {
    const auto lock = store_.get(queue_.layout.leader_key);
    if (!lock) return {};  // check_rights() reports it
    if (!*lock || (*lock)->session.empty()) {
      check_who_waits();
      return {};
    }
    const std::string who = lock_of(*lock).name();
    const auto member = read_member(store_, queue_.layout, who);
    const std::string doubt = member ? doubt_of(*member, pulse_of(*member)) : std::string{};
    if (!doubt.empty()) {
      report_.warn(name("leader"), who + " leads, but " + doubt, std::string{kIfDead});
    } else {
      const auto seen = parse_rfc3339(member ? member->seen : std::string{});
      report_.ok(name("leader"),
                 who + " leads" +
                     (seen ? ", last seen " + relative_time(*seen, wall_now()) : std::string{}));
    }
    return client::leader_of(*lock);
  }

  void check_pause() {
    if (!tasks_readable_) return;
    const auto control = store_.get(queue_.layout.control_key);
    if (!control || !*control) return;
    if (const std::string fault = wire::control_fault((*control)->value); !fault.empty()) {
      report_.warn(
          name("control"),
          "nothing is started, since " + queue_.layout.control_key + " cannot be read: " + fault,
          "run \"lictor resume\" or \"lictor pause\" to correct it");
      return;
    }
    if (const std::string odd = client::odd_switches((*control)->value); !odd.empty()) {
      report_.warn(name("control"), queue_.layout.control_key + ": " + odd,
                   "nothing acts on it; \"lictor pause\" and \"lictor leader --step-down\" write "
                   "what is acted on");
    }
    const PauseState state = client::read_pause((*control)->value);
    if (!state.paused) return;
    report_.warn(name("pause"), "the queue is " + pause_text(state),
                 "nothing is started until \"lictor resume\"");
  }

  [[nodiscard]] bool nothing_runs(const TaskInfo& task) const {
    const bool waits = task.state == TaskState::kWaiting || task.state == TaskState::kScheduled ||
                       task.state == TaskState::kOrphan;
    const core::QueueOptions& options = queue_.options;
    return serves_ && waits && !options.any_type && !options.types.contains(task.type);
  }

  void check_tasks(const client::Leader& leader) {
    if (!tasks_readable_) return;
    auto listed = store_.list(queue_.layout.tasks_prefix);
    if (!listed) return report_.fail(name("tasks"), listed.error());
    std::array<std::size_t, 9> counts{};
    std::vector<std::string> unreadable;
    std::vector<std::string> large;
    std::map<std::string, std::size_t> idle_types;  // and how many tasks of each
    std::vector<std::string> unstarted;
    std::string why_unstarted;
    std::size_t bytes = 0;
    std::size_t total = 0;
    const WallTime now = wall_now();
    std::vector<std::string> folders;
    std::vector<std::string> unnameable;
    const client::UnnameableKeys unnameable_keys{store_, listed->entries};
    for (wire::KvEntry& entry : listed->entries) {
      if (!queue_.layout.task_id(entry.key)) {
        if (!entry.value.empty()) folders.push_back(entry.key);
        continue;
      }
      ++total;
      bytes += entry.value.size();
      TaskInfo view = client::view_task(queue_.layout, std::move(entry), leader, now);
      unnameable_keys.mark(view);
      ++counts[static_cast<std::size_t>(view.state)];
      if (view.state == TaskState::kUnreadable) unreadable.push_back(view.id);
      if (view.state == TaskState::kTooLarge) large.push_back(view.id);
      if (view.state == TaskState::kUnnameable) unnameable.push_back(view.key);
      if (nothing_runs(view)) ++idle_types[view.type];
      if (view.state == TaskState::kWaiting && view.error.starts_with(core::kNotStartedError)) {
        unstarted.push_back(view.id);
        why_unstarted = view.error.substr(core::kNotStartedError.size());
      }
    }
    std::string detail = counted(total, "task") + " of " + byte_text(bytes);
    const std::array<TaskState, 4> shown{TaskState::kRunning, TaskState::kOrphan,
                                         TaskState::kWaiting, TaskState::kScheduled};
    for (const TaskState state : shown) {
      const std::size_t count = counts[static_cast<std::size_t>(state)];
      if (count != 0)
        detail += ", " + std::to_string(count) + ' ' + std::string{client::state_text(state)};
    }
    if (listed->hidden) detail += "; some may be hidden from this token";
    if (total > kManyTasks || bytes > kManyBytes) {
      report_.warn(name("tasks"), detail,
                   "each new leader reads them all; split them over several queues");
    } else {
      report_.ok(name("tasks"), detail);
    }
    if (!idle_types.empty()) {
      std::vector<std::string> types;
      std::size_t idle = 0;
      for (const auto& [type, count] : idle_types) {
        idle += count;
        types.push_back('"' + excerpt(type) + "\" (" + std::to_string(count) + ")");
      }
      report_.warn(name("tasks"),
                   counted(idle, "task") + (types.size() == 1 ? " of a type" : " of types") +
                       " without an executor here: " + some(types),
                   "configure an executor for it, or for \"*\"; ignore this if a program of your "
                   "own registers the type");
    }
    if (!unstarted.empty()) {
      report_.warn(
          name("tasks"),
          "the leader's host could not start " + some(unstarted) + ": " + why_unstarted,
          "no attempt was counted, and it is tried again; repair that host, or move the lead "
          "(\"lictor leader --step-down\")");
    }
    if (!folders.empty()) {
      report_.warn(name("tasks"),
                   "keys that end in \"/\" are folders, and these hold a value: " + some(folders),
                   "they are never run; write the tasks without the \"/\", or delete the keys");
    }
    if (!unnameable.empty()) {
      report_.warn(name("tasks"),
                   counted(unnameable.size(), "key") +
                       (unnameable.size() == 1 ? " that is" : " that are") +
                       " not UTF-8: " + some(unnameable),
                   "they are never run, since Consul lists them under other bytes; delete them by "
                   "the bytes they were written with; \"lictor show ID\" says how");
    }
    if (!unreadable.empty()) {
      report_.warn(name("tasks"),
                   counted(unreadable.size(), "unreadable record") + ": " + some(unreadable),
                   "a leader makes them dead letters; \"lictor show ID\" says what is wrong");
    }
    if (!large.empty()) {
      report_.warn(
          name("tasks"),
          counted(large.size(), "record") + " too large to be claimed: " + some(large),
          "they are never run; write them smaller (one transaction holds records of up to " +
              std::to_string(wire::record_limit(queue_.layout, queue_.layout.tasks_prefix)) +
              " bytes, less what a longer key takes) or delete them");
    }
  }

  void check_dead_letters() {
    const auto listed = store_.list(queue_.layout.dead_prefix);
    if (!listed) return;  // check_rights() reports it
    std::vector<std::string> dead;
    for (const wire::KvEntry& entry : listed->entries) {
      if (!entry.key.ends_with('/'))
        dead.push_back(entry.key.substr(queue_.layout.dead_prefix.size()));
    }
    if (dead.empty()) return report_.ok(name("dead"), "no dead letters");
    report_.warn(name("dead"), counted(dead.size(), "dead letter") + ": " + some(dead),
                 "see \"lictor list --state dead\" and \"lictor show ID\"");
  }

  Store& store_;
  const CheckOptions::Queue& queue_;
  const std::string agent_node_;
  const bool serves_;
  Report& report_;
  bool may_lead_ = false;
  bool tasks_readable_ = false;
};

}  // namespace

void check_queue(Store& store, const CheckOptions::Queue& queue, const std::string& agent_node,
                 bool serves, Report& report) {
  QueueCheck{store, queue, agent_node, serves, report}.run();
}

std::string takeover_text(const core::QueueOptions& options,
                          const std::vector<std::string>& session_checks, Duration hang_timeout) {
  // Consul ends a session one to two TTLs after its last renewal (the documentation promises one;
  // 1.8 takes two, CONSUL-FACTS.md 1.2), which was up to renew_interval ago. Then the lock-delay.
  const Duration least = std::chrono::floor<std::chrono::seconds>(
      options.session_ttl - options.renew_interval + options.lock_delay);
  const Duration most = 2 * options.session_ttl + options.lock_delay;
  std::string text =
      "another daemon takes over after a clean stop at once; when the leader's daemon dies, within "
      "1s of the end of its jobs, which have " +
      format_duration(options.kill_grace) + " (kill_grace) for it; when it hangs, ";
  if (hang_timeout > Duration::zero()) {
    text += "that much after " + format_duration(hang_timeout) + " (hang_timeout)";
  } else {
    text += "as when its host is lost, since hang_timeout is 0s";
  }
  text += "; when its host dies or is cut off, within " + format_duration(least) + " to " +
          format_duration(most) + " (session_ttl " + format_duration(options.session_ttl) +
          ", lock_delay " + format_duration(options.lock_delay) + ")";
  const bool serf =
      std::find(session_checks.begin(), session_checks.end(), "serfHealth") != session_checks.end();
  if (serf) text += ", or from " + format_duration(options.lock_delay) + " on if Consul notices";
  return text;
}

}  // namespace lictor::cli
