// The Consul that a configuration names: its addresses, its agents, and its limits.
//
//   each address, by a transport of its own --> cluster leader? --> agent: version, node, leave
//                                                    |
//                                     the first is Reached
//
// If one address is down and another one answers, the check warns: a daemon would use the other
// one, and nobody would notice the loss.

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/check.h"
#include "cli/process.h"
#include "client/retry.h"

namespace lictor::cli {
namespace {

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

// An agent that leaves the cluster when it is stopped ends the sessions of its node, and with them
// all leadership of its daemon: a restart of Consul would stop jobs.
void check_agent(const CheckOptions& options, const std::string& address, const Store::Agent& agent,
                 Report& report) {
  int major = 0, minor = 0;
  const bool known = std::sscanf(agent.version.c_str(), "%d.%d", &major, &minor) == 2;
  if (known && std::pair{major, minor} < std::pair{1, 8}) {
    report.warn("consul",
                fmt::format("{}: Consul {} is older than the oldest that lictor is made for",
                            address, agent.version),
                "upgrade Consul to 1.8 or newer");
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

// Asks each address through its own transport: a shared one would hide an address that is down.
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
