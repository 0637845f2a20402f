#include "admin/findings.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr Duration kLongDue = 60s;
constexpr Duration kShortLease = 2s;
constexpr std::chrono::milliseconds kClockSkew = 3s;
constexpr std::chrono::milliseconds kYear = 24h * 365;

// "host-a, host-b: 1f2e3d4c; host-c: 99aa8877": which members have the same configuration.
std::string groups_of(const std::vector<Peer>& members) {
  constexpr std::size_t kDigits = 8;
  constexpr std::size_t kMostNamed = 20;
  std::map<std::string, std::string> groups;  // the nodes of each digest
  std::vector<std::string> order;
  std::size_t named = 0;
  for (const Peer& peer : members) {
    if (peer.config.empty() || !peer.doubt.empty() || ++named > kMostNamed) continue;
    std::string& nodes = groups[peer.config];
    if (nodes.empty()) order.push_back(peer.config);
    nodes += (nodes.empty() ? "" : ", ") + peer.node;
  }
  std::string text;
  for (const std::string& config : order) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", groups[config],
                        config.substr(0, kDigits));
  }
  if (named > kMostNamed) text += fmt::format("; and {} more", named - kMostNamed);
  return text;
}

}  // namespace

void Findings::error(const char* kind, std::string what, std::string remedy) {
  add(kind, "error", std::move(what), std::move(remedy));
}
void Findings::warning(const char* kind, std::string what, std::string remedy) {
  add(kind, "warning", std::move(what), std::move(remedy));
}
void Findings::add(const char* kind, const char* severity, std::string&& what,
                   std::string&& remedy) {
  list_.push_back({{"kind", kind},
                   {"severity", severity},
                   {"what", std::move(what)},
                   {"remedy", std::move(remedy)}});
}

void Findings::of_fleet(const Fleet& fleet) {
  if (fleet.leader.empty()) {
    error("no_leader", "nobody leads this queue, so no task starts",
          fleet.members.empty()
              ? "start a daemon that serves the queue: systemctl start lictor"
              : (fleet.next.empty() ? "a daemon takes the lead within seconds, after a crash when "
                                      "the session TTL and the lock-delay are over"
                                    : fleet.next) +
                    "; if nobody does, read their logs");
  }
  // The leader runs the tasks, so compare with it; without a leader, with the first member.
  const Peer* model = nullptr;
  for (const Peer& peer : fleet.members) {
    if (!peer.config.empty() && (model == nullptr || peer.leads)) model = &peer;
  }
  std::string groups = groups_of(fleet.members);  // told once
  for (const Peer& peer : fleet.members) {
    if (!peer.reload_error.empty()) {
      warning("reload_refused",
              peer.node + " keeps an older configuration than its file: " + peer.reload_error,
              "repair the file there, then: systemctl reload lictor; what needs a restart: "
              "systemctl restart lictor");
    }
    const bool comparable = model != nullptr && !peer.config.empty() && peer.doubt.empty();
    if (comparable && peer.config != model->config) {
      const std::string where = client::difference(model->parts, peer.parts);
      warning("config_differs",
              fmt::format("{} has another configuration than {}{}{}{}", peer.node, model->node,
                          where.empty() ? "" : ": ", where,
                          groups.empty() ? "" : " (digests: " + std::exchange(groups, {}) + ")"),
              "compare the files of these hosts (\"lictor run --dry-run\" lists their queues and "
              "executors), install the same on every host, then: systemctl reload lictor");
    }
    const auto seen = parse_rfc3339(peer.seen);
    if (const WallTime now = wall_now(); seen && *seen - now > kClockSkew) {
      warning("clock",
              fmt::format("the clock of {} is {} or more ahead of this host's", peer.node,
                          rounded_duration(std::min(*seen - now, kYear))),
              "the leader's clock decides when a task is due: have every host keep time by NTP");
    }
    if (peer.doubt.empty()) continue;
    if (peer.leads) {
      error("leader_silent", peer.node + " leads, but " + peer.doubt,
            fleet.next.empty() ? "if it is dead, another daemon takes the lead when its session "
                                 "has ended and the lock-delay is over"
                               : fleet.next);
    } else {
      warning("member_silent", peer.node + ": " + peer.doubt,
              "look at that host: systemctl status lictor");
    }
  }
}

void Findings::of_queue(const json& status, const std::string& leader, const PauseState& paused) {
  if (paused.paused) {
    warning("paused",
            "paused" + (paused.by.empty() ? "" : " by " + paused.by) +
                (paused.reason.empty() ? "" : ": " + paused.reason),
            "resume it when no tasks need to be held back any more");
  }
  if (!status.is_object()) return;
  const std::string who = leader.empty() ? "the leader" : leader;
  if (status.value("role", "") == "draining") {
    warning("draining",
            fmt::format("{} gives up the lead: it starts no job and waits for {}", who,
                        counted(status.value("running", std::uint64_t{0}), "running job")),
            "another daemon goes on when they have ended; a job that hangs holds this up until "
            "drain_timeout");
  }
  const std::string cannot_start = status.value("cannot_start", "");
  if (!cannot_start.empty()) {
    error("cannot_start", who + " cannot start jobs: " + cannot_start,
          "repair that host, or hand the lead to another: step down");
  }
  if (const std::string lost = status.value("log_error", ""); !lost.empty()) {
    warning("output_lost", who + " cannot keep the output of jobs: " + lost,
            "make room in the daemon's state_dir; the jobs themselves go on");
  }
  const json states = status.value("states", json::object());
  const auto count = [&](const char* name) { return states.value(name, std::uint64_t{0}); };
  if (const auto tasks = count("no executor"); tasks != 0) {
    error("no_executor", counted(tasks, "task") + " of a type that " + who + " has no executor for",
          "add an executor for the type, or \"*\", to the configuration and reload it");
  }
  if (const auto tasks = count("too large"); tasks != 0) {
    warning("too_large", counted(tasks, "task") + " too large to be claimed",
            "write the data elsewhere and its place into the task; then cancel these");
  }
  if (const auto tasks = count("unnameable"); tasks != 0) {
    warning("unnameable", counted(tasks, "task") + " under keys that are not valid UTF-8",
            "delete the keys and write the tasks under others");
  }
  const json schedules = status.value("schedules", json::object());
  if (const auto bad = schedules.value("bad", std::uint64_t{0}); bad != 0) {
    warning("schedule_fault",
            counted(bad, "bad schedule") + " (cannot be read, or the task is too large)",
            "\"lictor check\" names them and says what is wrong");
  }
  const auto ms = [&](const char* name, std::int64_t otherwise) {
    return std::chrono::milliseconds{status.value(name, otherwise)};
  };
  if (const auto due = ms("oldest_due_ms", 0);
      !paused.paused && cannot_start.empty() && due > kLongDue) {
    const auto running = status.value("running", std::uint64_t{0});
    std::string what = "the first task that may start has been due for " + rounded_duration(due);
    if (running != 0) {
      what += fmt::format("; {} run{}, the oldest for {}", counted(running, "job"),
                          running == 1 ? "s" : "", rounded_duration(ms("longest_running_ms", 0)));
    }
    warning(
        "overdue", what,
        running == 0
            ? "\"lictor why ID\" says what it waits for"
            : "if a job hangs, cancel it and give its type a timeout; if tasks come faster than "
              "jobs end, raise concurrency where their order does not matter");
  }
  if (const auto lease = ms("lease_left_ms", -1); lease >= 0ms && lease < kShortLease) {
    warning("lease_short",
            fmt::format("the lease of {} ends in {} ms unless Consul answers", who, lease.count()),
            "Consul is slow or cut off from that host; see its log");
  }
}

}  // namespace lictor::admin
