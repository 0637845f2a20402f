// What is wrong with a queue.

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "admin/leaders.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr Duration kLongDue = 60s;
constexpr Duration kShortLease = 2s;
constexpr std::chrono::milliseconds kClockSkew = 3s;
constexpr std::chrono::milliseconds kYear = 24h * 365;

// "host-a, host-b: 1f2e3d4c; host-c: 99aa8877": which members have the same configuration.
std::string groups_of(const std::vector<Peer>& members) {
  constexpr std::size_t kDigits = 8;
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::pair<std::string, std::string>> groups;  // a digest, and the nodes that have it
  std::size_t named = 0;
  for (const Peer& peer : members) {
    if (peer.config.empty() || !peer.doubt.empty() || ++named > kMostNamed) continue;
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& each) { return each.first == peer.config; });
    if (group == groups.end()) {
      groups.emplace_back(peer.config, peer.node);
    } else {
      group->second += ", " + peer.node;
    }
  }
  std::string text;
  for (const auto& [config, nodes] : groups) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", nodes, config.substr(0, kDigits));
  }
  if (named > kMostNamed) text += fmt::format("; and {} more", named - kMostNamed);
  return text;
}

class Findings {
 public:
  // `kind` is for programs: "no_leader". Each kind is in openapi.json.
  void error(const char* kind, std::string_view what, std::string_view remedy) {
    add(kind, "error", what, remedy);
  }
  void warning(const char* kind, std::string_view what, std::string_view remedy) {
    add(kind, "warning", what, remedy);
  }
  ordered_json list = ordered_json::array();

 private:
  void add(const char* kind, const char* severity, std::string_view what, std::string_view remedy) {
    list.push_back({{"kind", kind}, {"severity", severity}, {"what", what}, {"remedy", remedy}});
  }
};

void check_leads(const Fleet& fleet, Findings& out) {
  const std::vector<std::uint32_t> free = fleet.free();
  if (free.empty()) return;
  const bool all = free.size() == fleet.leads.size();
  const std::string next =
      !fleet.next.empty() ? fleet.next
      : free.size() == 1 ? "a daemon takes the lead within seconds, after a crash when the session "
                           "TTL and the lock-delay are over"
                         : "daemons take them within seconds, after a crash when the session TTL "
                           "and the lock-delay are over";
  out.error("no_leader",
            all ? "nobody leads this queue, so no task starts"
                : "nobody leads " + partitions_text(free) + ", so none of " +
                      (free.size() == 1 ? "its" : "their") + " tasks starts",
            fleet.members.empty() ? "start a daemon that serves the queue: systemctl start lictor"
                                  : next + "; if nobody does, read their logs");
}

void check_wishes(const Fleet& fleet, Findings& out) {
  std::map<std::uint32_t, std::string> wishes;  // who has each
  for (const Peer& peer : fleet.members) {
    std::string& nodes = wishes[peer.wish];
    nodes += (nodes.empty() ? "" : ", ") + peer.node;
  }
  if (wishes.empty()) return;
  const std::string has = "the queue has " + counted(fleet.leads.size(), "partition");
  if (wishes.size() > 1) {
    std::string parts;
    for (const auto& [wish, nodes] : wishes) {
      parts += fmt::format("{}{}: {}", parts.empty() ? "" : "; ", wish, nodes);
    }
    out.warning(
        "partitions_differ", has + ", and the daemons ask for different numbers (" + parts + ")",
        "give every host the same \"partitions\" in its configuration, then: systemctl reload "
        "lictor; until then the number stays");
  } else if (wishes.begin()->first != fleet.leads.size()) {
    out.warning(
        "partitions_change",
        fmt::format("{}, and all daemons ask for {}", has, wishes.begin()->first),
        "the number changes when the jobs have ended, within drain_timeout; the logs of the "
        "daemons say what they wait for");
  }
}

void check_peer(const Peer& peer, const Fleet& fleet, Findings& out) {
  if (const WallTime now = wall_now(); const auto seen = parse_rfc3339(peer.seen)) {
    if (*seen - now > kClockSkew) {
      out.warning(
          "clock",
          fmt::format("the clock of {} is {} or more ahead of this host's", peer.node,
                      rounded_duration(std::min(*seen - now, kYear))),
          "the leader's clock decides when a task is due: have every host keep time by NTP");
    }
  }
  if (peer.doubt.empty()) return;
  if (peer.leads()) {
    const std::string what =
        fleet.divided() ? " leads " + partitions_text(peer.partitions) : std::string{" leads"};
    out.error("leader_silent", peer.node + what + ", but " + peer.doubt,
              peer.next.empty()
                  ? "if it is dead, another daemon takes the lead when its session has "
                    "ended and the lock-delay is over"
                  : peer.next);
  } else {
    out.warning("member_silent", peer.node + ": " + peer.doubt,
                "look at that host: systemctl status lictor");
  }
}

void check_fleet(const Fleet& fleet, Findings& out) {
  check_leads(fleet, out);
  check_wishes(fleet, out);
  // A leader runs the tasks, so compare with it; without a leader, with the first member.
  const Peer* model = nullptr;
  for (const Peer& peer : fleet.members) {
    if (peer.config.empty()) continue;
    if (model == nullptr || (peer.leads() && !model->leads())) model = &peer;
  }
  std::string groups = groups_of(fleet.members);  // told once
  for (const Peer& peer : fleet.members) {
    if (!peer.reload_error.empty()) {
      out.warning("reload_refused",
                  peer.node + " keeps an older configuration than its file: " + peer.reload_error,
                  "repair the file there, then: systemctl reload lictor; what needs a restart: "
                  "systemctl restart lictor");
    }
    const bool comparable = model != nullptr && !peer.config.empty() && peer.doubt.empty();
    if (comparable && peer.config != model->config) {
      const std::string where = client::difference(model->parts, peer.parts);
      out.warning(
          "config_differs",
          fmt::format("{} has another configuration than {}{}{}{}", peer.node, model->node,
                      where.empty() ? "" : ": ", where,
                      groups.empty() ? "" : " (digests: " + std::exchange(groups, {}) + ")"),
          "compare the files of these hosts (\"lictor run --dry-run\" lists their queues and "
          "executors), install the same on every host, then: systemctl reload lictor");
    }
    check_peer(peer, fleet, out);
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

// What is wrong with one host.
void check_host(const LeaderStatus& leader, Findings& out) {
  if (leader.status.value("role", "") == "draining") {
    out.warning(
        "draining",
        fmt::format("{} gives up the lead: it starts no job and waits for {}", leader.node,
                    counted(leader.status.value("running", std::uint64_t{0}), "running job")),
        "another daemon goes on when they have ended; a job that hangs holds this up until "
        "drain_timeout");
  }
  const std::string cannot_start = leader.status.value("cannot_start", "");
  if (!cannot_start.empty()) {
    out.error("cannot_start", leader.node + " cannot start jobs: " + cannot_start,
              "repair the host or the receiver; if only that host is affected, hand the lead to "
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

void check_tasks(const std::vector<LeaderStatus>& leaders, Findings& out) {
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

std::string remedy_of(const ScheduleFault& fault) {
  switch (fault.kind) {
    case ScheduleFault::Kind::kBad:
      return fmt::format("correct {}, or \"lictor schedule remove {}\"", fault.key, fault.name);
    case ScheduleFault::Kind::kOdd:
      return "correct " + fault.key;
    case ScheduleFault::Kind::kType:
      return "add an executor for the type, or for \"*\", to the configuration and reload it; or "
             "correct " +
             fault.key;
  }
  return {};
}

void check_schedules(const QueueFacts& facts, Findings& out) {
  constexpr std::size_t kNamed = 5;
  std::size_t number = 0, bad = 0;
  for (const ScheduleFault& fault : facts.schedules) {
    const bool is_bad = fault.kind == ScheduleFault::Kind::kBad;
    if (is_bad) ++bad;
    if (++number > kNamed) continue;
    out.warning(is_bad ? "schedule_fault" : "schedule_note",
                fmt::format("schedule \"{}\": {}", printable(fault.name), fault.what),
                printable(remedy_of(fault)));
  }
  if (number > kNamed) {
    out.warning("schedule_note", fmt::format("{} more like these", number - kNamed),
                "\"lictor check\" names them and says what is wrong");
  }
  // What the leaders count, where the records cannot be read here.
  if (const auto counted_bad = sum_of(facts.leaders, "schedules", "bad"); counted_bad > bad) {
    out.warning(
        "schedule_fault",
        counted(counted_bad - bad, "bad schedule") + " (cannot be read, or the task is too large)",
        "\"lictor check\" names them and says what is wrong");
  }
}

void check_due(const std::vector<LeaderStatus>& leaders, Findings& out) {
  std::chrono::milliseconds due{0}, longest{0};
  std::uint64_t running = 0;
  for (const LeaderStatus& leader : leaders) {
    if (!leader.status.value("cannot_start", "").empty()) return;  // that is why
    due = std::max(due, ms_of(leader, "oldest_due_ms"));
    longest = std::max(longest, ms_of(leader, "longest_running_ms"));
    running += leader.status.value("running", std::uint64_t{0});
  }
  if (due <= kLongDue) return;
  std::string what = "the first task that may start has been due for " + rounded_duration(due);
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

ordered_json findings_of(const QueueFacts& facts) {
  Findings out;
  if (facts.consul_trouble.any()) {
    out.error(
        "consul", facts.consul_trouble.what,
        "no task is claimed or finished until Consul answers again; look at Consul's agent on "
        "this host");
  } else if (!facts.fleet) {
    out.error("members_unknown", "the members cannot be read: " + facts.fleet.error().message,
              "give the daemon's token the rights of /usr/share/lictor/consul/policy-daemon.hcl");
  } else {
    check_fleet(*facts.fleet, out);
  }
  const PauseState& paused = facts.paused;
  if (paused.paused) {
    out.warning("paused",
                "paused" + (paused.by.empty() ? "" : " by " + paused.by) +
                    (paused.reason.empty() ? "" : ": " + paused.reason),
                "resume it when no tasks need to be held back any more");
  }
  for (const LeaderStatus& leader : facts.leaders) check_host(leader, out);
  check_tasks(facts.leaders, out);
  check_schedules(facts, out);
  if (!paused.paused) check_due(facts.leaders, out);
  return std::move(out.list);
}

}  // namespace lictor::admin
