#include "cluster/diagnosis.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "schedule/ticks.h"
#include "wire/fleet.h"

namespace lictor::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kClockGap = 1min;  // more than hosts' clocks differ with NTP
constexpr Duration kLongDue = 60s;
constexpr Duration kShortLease = 2s;
constexpr std::chrono::milliseconds kClockSkew = 3s;
constexpr std::chrono::milliseconds kYear = 24h * 365;

struct List {
  void error(const char* kind, std::string what, std::string remedy) {
    list.push_back({kind, Finding::Severity::kError, std::move(what), std::move(remedy)});
  }
  void warning(const char* kind, std::string what, std::string remedy) {
    list.push_back({kind, Finding::Severity::kWarning, std::move(what), std::move(remedy)});
  }
  Findings list;
};

// Without a leader the remedy depends on whether some daemon could take over: then the finding says
// when it will; the log is worth reading only if it does not.
void check_leads(const Fleet& fleet, List& out) {
  const Partitions free = free_partitions(fleet.locks);
  if (free.empty()) return;
  const bool all = free.size() == fleet.locks.count();
  std::vector<std::string> up;
  for (const Member& member : fleet.members) {
    if (unresponsive_reason(member).empty()) up.push_back(member.node);
  }
  out.error("no_leader",
            all ? "nobody leads this queue, so no task starts"
                : "nobody leads " + partitions_text(free) + ", so none of " +
                      (free.size() == 1 ? "its" : "their") + " tasks starts",
            up.empty()
                ? "start a daemon that serves the queue: systemctl start lictor; if one runs, "
                  "its log says why it is not among the members"
                : fleet.next + "; if nobody does, read the log of " + some(up));
}

// A session of another program on the lock keeps every daemon from leading.
void check_strangers(const Fleet& fleet, List& out) {
  std::set<std::string> strangers;
  for (const LockView& lock : fleet.locks) {
    const std::string node = lock.name();
    const bool known = node.empty() || find_member(fleet.members, node) != nullptr;
    if (!known && !fleet.members.empty()) strangers.insert(node);
  }
  for (const std::string& node : strangers) {
    out.warning("leader_silent", node + " leads, and is not among the members",
                "if that is no daemon of lictor, nothing runs: find out whose session holds the "
                "lock, and destroy it");
  }
}

// The number changes only when all members ask for the same one. So members that differ keep the
// old number for ever, and members that agree on another one are about to change it.
void check_desired_partitions(const Fleet& fleet, const std::string& queue, List& out) {
  std::map<std::uint32_t, std::string> askers;  // the nodes that ask for each number
  for (const Member& member : fleet.members) {
    std::string& nodes = askers[wire::number_of(member.desired_partitions, queue)];
    nodes += (nodes.empty() ? "" : ", ") + member.node;
  }
  if (askers.empty()) return;
  const std::string has = "the queue has " + counted(fleet.locks.count(), "partition");
  if (askers.size() > 1) {
    std::string parts;
    for (const auto& [number, nodes] : askers) {
      parts += fmt::format("{}{}: {}", parts.empty() ? "" : "; ", number, nodes);
    }
    out.warning(
        "partitions_differ", has + ", and the daemons ask for different numbers (" + parts + ")",
        "give every host the same \"partitions\" in its configuration, then: systemctl reload "
        "lictor; until then the number stays");
  } else if (askers.begin()->first != fleet.locks.count()) {
    out.warning(
        "partitions_change",
        fmt::format("{}, and all daemons ask for {}", has, askers.begin()->first),
        "the number changes when the jobs have ended, within drain_timeout; the logs of the "
        "daemons say what they wait for");
  }
}

// A silent leader is an error, since its tasks wait; a silent follower is a warning.
void check_member(const Member& member, const Fleet& fleet, List& out) {
  if (const auto seen = parse_rfc3339(member.seen)) {
    const auto ahead = *seen - wall_now();
    const bool is_behind = member.answers == true && -ahead > kLateEntry;
    if (ahead > kClockSkew || is_behind) {
      out.warning(
          "clock",
          fmt::format("the clock of {} is {} or more {} this host's", member.node,
                      rounded_duration(std::clamp(is_behind ? -ahead : ahead, -kYear, kYear)),
                      is_behind ? "behind" : "ahead of"),
          "the leader's clock decides when a task is due: have every host keep time by NTP");
    }
  }
  const std::string doubt = unresponsive_reason(member);
  if (!member.unready.empty()) {
    out.warning("member_unready", member.node + " is not ready: " + member.unready,
                "it takes no leadership until that is over; its log says more");
  }
  if (doubt.empty()) return;
  if (member.leads) {
    const std::string what = fleet.partitioned() ? " leads " + partitions_text(member.partitions)
                                                 : std::string{" leads"};
    out.error("leader_silent", member.node + what + ", but " + doubt,
              member.next.empty()
                  ? "if it is dead, another daemon takes leadership when its session has "
                    "ended and the lock-delay is over"
                  : member.next);
  } else {
    out.warning("member_silent", member.node + ": " + doubt,
                "look at that host: systemctl status lictor");
  }
}

std::uint64_t count_of(const ordered_json& status, const char* group, const char* name) {
  return status.value(group, ordered_json::object()).value(name, std::uint64_t{0});
}

std::uint64_t sum_of(const std::vector<LeaderStatus>& leaders, const char* group,
                     const char* name) {
  std::uint64_t sum = 0;
  for (const LeaderStatus& leader : leaders) sum += count_of(leader.status, group, name);
  return sum;
}

std::chrono::milliseconds ms_of(const LeaderStatus& leader, const char* name,
                                std::int64_t otherwise = 0) {
  return std::chrono::milliseconds{leader.status.value(name, otherwise)};
}

// Findings that one leader has of its own host.
void check_host(const LeaderStatus& leader, List& out) {
  if (leader.status.value("role", "") == "draining") {
    out.warning(
        "draining",
        fmt::format("{} gives up leadership: it starts no job and waits for {}", leader.node,
                    counted(leader.status.value("running", std::uint64_t{0}), "running job")),
        "another daemon goes on when they have ended; a job that hangs holds this up until "
        "drain_timeout");
  }
  const std::string cannot_start = leader.status.value("cannot_start", "");
  if (!cannot_start.empty()) {
    out.error("cannot_start", leader.node + " cannot start jobs: " + cannot_start,
              "repair the host or the receiver; if only that host is affected, hand leadership to "
              "another: step down");
  }
  if (const std::string lost = leader.status.value("log_error", ""); !lost.empty()) {
    out.warning(
        "output_lost", leader.node + " cannot keep the output of jobs: " + lost,
        "make room in the daemon's state_dir, or correct its rights; the jobs themselves go on");
  }
  if (const auto lease = ms_of(leader, "lease_left_ms", -1); lease >= 0ms && lease < kShortLease) {
    out.warning("lease_short",
                fmt::format("the lease of {} ends in {} ms unless Consul answers", leader.node,
                            lease.count()),
                "Consul is slow or cut off from that host; see its log");
  }
}

// The states are those of the core (core/tasks/task_state.h), by their names.
void check_tasks(const std::vector<LeaderStatus>& leaders, List& out) {
  if (const auto tasks = sum_of(leaders, "states", "no executor"); tasks != 0) {
    std::string who;
    std::size_t named = 0;
    for (const LeaderStatus& leader : leaders) {
      if (count_of(leader.status, "states", "no executor") == 0) continue;
      who += (who.empty() ? "" : ", ") + leader.node;
      ++named;
    }
    out.error("no_executor",
              fmt::format("{} of a type that {} {} no executor for", counted(tasks, "task"), who,
                          named == 1 ? "has" : "have"),
              "add an executor for the type, or \"*\", to the configuration and reload it");
  }
  if (const auto tasks = sum_of(leaders, "states", "too large"); tasks != 0) {
    out.warning("too_large", counted(tasks, "task") + " too large to be claimed",
                "write the data elsewhere and its place into the task; then cancel these");
  }
  if (const auto tasks = sum_of(leaders, "states", "unnameable"); tasks != 0) {
    out.warning("unnameable", counted(tasks, "task") + " under keys that are not valid UTF-8",
                "delete the keys and write the tasks under others");
  }
}

// `oldest_due_ms` is the time for which the first task that has an executor has been due. It is
// long either because jobs hang or are too slow, or, with none running, for a reason that "why"
// names. A host that cannot start jobs has a finding of its own.
void check_due(const std::vector<LeaderStatus>& leaders, List& out) {
  std::chrono::milliseconds due{0}, longest{0};
  std::uint64_t running = 0;
  for (const LeaderStatus& leader : leaders) {
    if (!leader.status.value("cannot_start", "").empty()) return;  // that is why
    due = std::max(due, ms_of(leader, "oldest_due_ms"));
    longest = std::max(longest, ms_of(leader, "longest_running_ms"));
    running += leader.status.value("running", std::uint64_t{0});
  }
  if (due <= kLongDue) return;
  std::string what = "the first waiting task has been due for " + rounded_duration(due);
  if (running != 0) {
    what += fmt::format("; {} run{}, the oldest for {}", counted(running, "job"),
                        running == 1 ? "s" : "", rounded_duration(longest));
  }
  out.warning(
      "overdue", what,
      running == 0
          ? "\"lictor why ID\" says what it waits for"
          : "if a job hangs, cancel it and give its type a timeout; if tasks come faster than "
            "jobs end, raise concurrency where their order does not matter");
}

}  // namespace

Findings diagnose(const Fleet& fleet, const std::string& queue) {
  List out;
  check_leads(fleet, out);
  check_strangers(fleet, out);
  check_desired_partitions(fleet, queue, out);
  // A leader runs the tasks, so compare with it; without a leader, with the first member.
  const Member* model = nullptr;
  for (const Member& member : fleet.members) {
    if (member.config.empty()) continue;
    if (model == nullptr || (member.leads && !model->leads)) model = &member;
  }
  for (const Member& member : fleet.members) {
    if (!member.reload_error.empty()) {
      out.warning(
          "reload_refused",
          member.node + " keeps an older configuration than its file: " + member.reload_error,
          "if it says that a restart is needed, on that host: systemctl restart lictor; else "
          "repair the file there, then: systemctl reload lictor");
    }
    const bool comparable =
        model != nullptr && !member.config.empty() && unresponsive_reason(member).empty();
    if (comparable && member.config != model->config) {
      const std::string where = client::difference(model->parts, member.parts);
      out.warning(
          "config_differs",
          fmt::format("{} has another configuration than {}{}{}", member.node, model->node,
                      where.empty() ? "" : ": ", where),
          "compare the files of these hosts (\"lictor run --dry-run\" lists their queues and "
          "executors), install the same on every host, then: systemctl reload lictor");
    }
    check_member(member, fleet, out);
  }
  return std::move(out.list);
}

Findings diagnose(const std::vector<LeaderStatus>& leaders, bool paused) {
  List out;
  for (const LeaderStatus& leader : leaders) check_host(leader, out);
  check_tasks(leaders, out);
  if (!paused) check_due(leaders, out);
  return std::move(out.list);
}

Findings diagnose(const std::vector<client::StoredSchedule>& schedules, const TypeFault& type_fault,
                  WallTime now) {
  List out;
  for (const client::StoredSchedule& stored : schedules) {
    const auto warn = [&](const char* kind, const std::string& what, const std::string& remedy) {
      out.warning(kind, fmt::format("schedule \"{}\": {}", printable(stored.name), what),
                  printable(remedy));
    };
    if (!stored.definition) {
      warn("schedule_fault", "it makes no tasks: " + stored.definition.error().message,
           fmt::format("correct {}, or \"lictor schedule remove {}\"", stored.key,
                       shell_argument(stored.name)));
      continue;
    }
    if (const auto last = stored.definition->last_tick; last && *last > now + kClockGap) {
      warn("schedule_fault",
           fmt::format("its lastTick, {}, is ahead of this host's clock ({}), so it makes no tasks "
                       "until then",
                       schedule::tick_text(*last), relative_time(*last, now)),
           fmt::format("if this clock is right, the leader's was wrong: set lastTick in {} to the "
                       "time now, and check the hosts' clocks",
                       stored.key));
    }
    if (!stored.no_effect.empty()) warn("schedule_note", stored.no_effect, "correct " + stored.key);
    if (const std::string note = client::name_note(stored.name); !note.empty()) {
      warn("schedule_note", note, R"(add it under a name of letters, digits and ",_./-")");
    }
    if (const std::string fault = type_fault(stored.type); !fault.empty()) {
      warn("schedule_note",
           fmt::format("its tasks have the type \"{}\", {}", excerpt(stored.type), fault),
           "add an executor for it, or for \"*\", to the daemons' configuration, then: systemctl "
           "reload lictor; or correct " +
               stored.key);
    }
  }
  return std::move(out.list);
}

ordered_json findings_json(const Findings& findings, const std::string& queue) {
  const auto text = [&](const std::string& said) { return with_options(said, queue); };
  ordered_json list = ordered_json::array();
  for (const Finding& each : findings) {
    const bool is_error = each.severity == Finding::Severity::kError;
    list.push_back({{"kind", each.kind},
                    {"severity", is_error ? "error" : "warning"},
                    {"what", text(each.what)},
                    {"remedy", text(each.remedy)}});
  }
  return list;
}

namespace {

// The '"' that ends the command; one in single quotes belongs to a shell_word().
std::size_t end_of_command(std::string_view text, std::size_t at) {
  bool in_word = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '\'') in_word = !in_word;
    if (text[at] == '"' && !in_word) return at;
  }
  return std::string_view::npos;
}

}  // namespace

// Without the options, a suggested command would work on another queue or cluster, or on none.
std::string with_options(std::string_view text, std::string_view queue,
                         std::string_view everywhere) {
  static constexpr std::array<std::string_view, 19> kOfOneQueue{
      "submit",  "list",     "show",  "why",    "logs",   "events",  "cancel",
      "retry",   "dead",     "pause", "resume", "leader", "members", "drain",
      "undrain", "schedule", "top",   "stats",  "bench"};
  constexpr std::string_view kStart = "\"lictor ";
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t start = text.find(kStart, at);
    const std::size_t end =
        start == std::string_view::npos ? start : end_of_command(text, start + kStart.size());
    if (end == std::string_view::npos) return out.append(text.substr(at));
    const std::string_view command = text.substr(start, end - start);
    const std::size_t options = std::min(command.find(" -- "), command.size());
    const std::string_view verb = command.substr(kStart.size());
    const std::string_view name = verb.substr(0, verb.find(' '));
    const bool fits = std::find(kOfOneQueue.begin(), kOfOneQueue.end(), name) != kOfOneQueue.end();
    const bool named = queue.empty() || command.find(" -q ") != std::string_view::npos;
    out.append(text.substr(at, start + options - at));
    if (fits && !named) out.append(" -q ").append(queue);
    if (fits || name == "check") out.append(everywhere);
    out.append(command.substr(options)) += '"';
    at = end + 1;
  }
}

}  // namespace lictor::cluster
