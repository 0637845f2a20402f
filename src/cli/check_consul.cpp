// The Consul that a configuration names: its addresses, its agents, and what it takes.
//
//   each address, by a transport of its own --> cluster leader? --> agent: version, node, leave
//                                                    |                |
//                                     the first is Reached            +--> its known faults
//
// If one address is down and another one answers, the check warns: a daemon would use the other
// one, and nobody would notice the loss.

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/check.h"
#include "cli/process.h"
#include "client/retry.h"

namespace lictor::cli {
namespace {

using Version = std::tuple<int, int, int>;

// std::nullopt if `text` is no version. "1.22.0-dev" and "1.16.1+ent" are those of the same number.
std::optional<Version> parse_version(std::string_view text) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (std::sscanf(std::string{text}.c_str(), "%d.%d.%d", &major, &minor, &patch) < 2) {
    return std::nullopt;
  }
  return Version{major, minor, patch};
}

// Whether the agent at `address` runs on this host.
// A server on another host is no agent of this one: sessions belong to the node of the agent that
// is asked.
bool is_local(std::string_view address) {
  if (const auto scheme = address.find("://"); scheme != std::string_view::npos) {
    if (address.starts_with("unix:")) return true;
    address.remove_prefix(scheme + 3);
  }
  return address.starts_with("127.") || address.starts_with("localhost") ||
         address.starts_with("[::1]");
}

}  // namespace

// Faults of single versions of Consul that lictor meets, each with the way out.
std::vector<Fault> version_faults(std::string_view version, bool is_server) {
  const auto number = parse_version(version);
  if (!number) return {};
  const auto is_from = [&](Version first, Version last) {
    return *number >= first && *number <= last;
  };
  std::vector<Fault> faults;
  if (*number < Version{1, 8, 0}) {
    faults.push_back({"older than the oldest version that lictor is made for",
                      "upgrade Consul to 1.8 or newer"});
  }
  // The deadline of calls to servers knew nothing of blocking queries.
  if (!is_server && (is_from({1, 12, 1}, {1, 12, 1}) || is_from({1, 11, 9}, {1, 11, 9}))) {
    faults.push_back(
        {"in this version, every blocking query through a client agent fails after 7s, "
         "so daemons read their lists again and again",
         "upgrade this agent to another patch version"});
  }
  if (is_from({1, 10, 8}, {1, 10, 11}) || is_from({1, 11, 2}, {1, 11, 6}) ||
      is_from({1, 12, 0}, {1, 12, 2})) {
    faults.push_back(
        {"this version decodes the path of a request twice, so keys with a % are taken "
         "for others",
         "upgrade this agent to 1.10.12, 1.11.7, 1.12.3 or newer; until then, use no % "
         "in the names of tasks"});
  }
  if (is_from({1, 15, 0}, {1, 15, 2})) {
    faults.push_back({"servers of this version can take 100 times as long for a write under load",
                      "upgrade the servers to 1.15.3 or newer"});
  }
  return faults;
}

// An agent that leaves the cluster when it is stopped ends the sessions of its node, and with them
// all leadership of its daemon: a restart of Consul would stop jobs.
void check_agent(const CheckOptions& options, const std::string& address, const Store::Agent& agent,
                 Report& report) {
  for (const Fault& fault : version_faults(agent.version, agent.is_server)) {
    report.warn("consul", fmt::format("{}: Consul {}: {}", address, agent.version, fault.what),
                fault.remedy);
  }
  if (!options.serves) return;
  std::vector<std::string_view> stops;
  if (agent.leaves_on_term) stops.emplace_back(R"("leave_on_terminate": false)");
  if (agent.leaves_on_interrupt) stops.emplace_back(R"("skip_leave_on_interrupt": true)");
  if (!stops.empty()) {
    report.warn("agent",
                fmt::format("when the Consul agent {} is stopped or restarted, it leaves the "
                            "cluster, which ends the sessions of its node: the daemon loses "
                            "leadership, and its jobs are stopped",
                            agent.node),
                fmt::format("set {} in that agent's configuration and restart it",
                            fmt::join(stops, " and ")));
  }
  if (!agent.is_server || is_local(address)) return;
  std::vector<std::string> lacking;
  const bool checks = std::any_of(options.queues.begin(), options.queues.end(),
                                  [](const auto& queue) { return !queue.session_checks.empty(); });
  if (checks) lacking.emplace_back(R"("session_checks": [] in each queue)");
  if (options.registers) lacking.emplace_back(R"("register": false in "consul")");
  if (options.consul.addresses.size() > 1) lacking.emplace_back("one address");
  const std::string detail =
      fmt::format("{} is a Consul server ({}): this daemon's sessions belong to that server's node",
                  address, agent.node);
  if (lacking.empty()) return report.ok("agent", detail);
  report.warn("agent", detail + ", and a restart of that server may end leadership",
              fmt::format("use a client agent on this host; without one (Kubernetes), set {}; see "
                          "\"Without client agents\" in /usr/share/lictor/consul/README.md",
                          fmt::join(lacking, ", ")));
}

constexpr Duration kSlow = std::chrono::seconds{1};  // for one answer

// Each address through a transport of its own: one for all would hide an address that is down.
Reached check_consul(const CheckOptions& options, const Console& console, Report& report) {
  Reached reached;
  std::vector<std::pair<std::string, Error>> down;
  for (const std::string& address : options.consul.addresses) {
    net::Options alone = options.consul;
    alone.addresses = {address};
    auto opened = net::Transport::open(std::move(alone));
    if (!opened) {
      down.emplace_back(address, opened.error());
      continue;
    }
    auto transport = std::move(*opened);
    report_slow_replies(*transport, {address}, console);
    Store store{*transport};
    const Instant asked_at = boot_now();
    const auto leader = store.cluster_leader();
    const Duration took = boot_now() - asked_at;
    if (!leader) {
      down.emplace_back(address, leader.error());
      continue;
    }
    const auto agent = store.agent();
    std::string detail = address;
    if (agent) {
      detail += ": Consul " + agent->version + ", node " + agent->node;
    } else if (agent.error().code == ErrorCode::kPermissionDenied) {
      detail += ": version and node are hidden from this token";
    }
    if (leader->empty()) {
      report.fail(
          "consul", detail + "; the cluster has no leader",
          "an election takes seconds; if there is still no leader then, too few servers are up",
          ErrorCode::kUnavailable);
      continue;
    }
    detail += "; the cluster's leader is " + *leader;
    if (took < kSlow) {
      report.ok("consul", detail);
    } else {
      report.warn("consul",
                  fmt::format("{}; it took {} to answer", detail,
                              format_duration(std::chrono::floor<std::chrono::milliseconds>(took))),
                  fmt::format("a daemon gives up a request after {}, and its lease ends without "
                              "answers: see to that agent, its servers and the network",
                              format_duration(core::QueueOptions{}.request_timeout)));
    }
    if (agent) check_agent(options, address, *agent, report);
    if (!agent && options.serves && agent.error().code == ErrorCode::kPermissionDenied) {
      report.warn(
          "agent",
          address +
              ": whether a restart of this Consul agent ends leadership is hidden from "
              "this token",
          R"(for this check the token needs: agent "NODE" { policy = "read" }; a client agent )"
          R"(needs "leave_on_terminate": false and "skip_leave_on_interrupt": true)");
    }
    if (!agent && agent.error().message.find("ACL not found") != std::string::npos) {
      report.fail("token", agent.error());
    }
    if (!reached.transport) {
      reached.transport = std::move(transport);
      reached.node = agent ? agent->node : std::string{};
    }
  }
  for (auto& [address, error] : down) {
    if (reached.transport) {
      report.warn("consul", error.message, "the other addresses are used meanwhile");
    } else {
      const bool no_agent = client::is_temporary(error);
      report.fail("consul", error.message,
                  no_agent ? "see to that agent; the queues are not looked at until it answers"
                           : "the queues are not looked at until that is corrected",
                  error.code);
    }
  }
  return reached;
}

}  // namespace lictor::cli
