// The doctor: the configuration, each address of Consul, then each queue.

#include <unistd.h>

#include <memory>
#include <utility>

#include "base/printable.h"
#include "cli/check_report.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/patience.h"

namespace lictor::cli {
namespace {

// The first address that answers, asked for the rest.
struct Reached {
  std::unique_ptr<net::Transport> transport;
  std::string node;
};

bool is_old(const std::string& version) {
  int major = 0;
  int minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 &&
         (major < 1 || (major == 1 && minor < 8));
}

void check_configuration(const CheckOptions& options, Report& report) {
  const std::string name = "configuration";
  if (options.error) return report.fail(name, *options.error);
  if (options.file.empty()) {
    report.ok(name, "no file; the defaults: queue \"" + options.queues.front().name + "\" below " +
                        options.queues.front().layout.tasks_prefix);
  } else {
    report.ok(name, options.file + ": " + counted(options.queues.size(), "queue"));
  }
  for (const std::string& warning : options.warnings) report.warn(name, warning, {});
  if (options.daemon_error) {
    report.fail(name, "not fit for the daemon: " + options.daemon_error->message, {},
                options.daemon_error->code);
  }
}

void check_state_dir(const CheckOptions& options, Report& report) {
  if (!options.serves) return;
  if (!options.state_dir_exposure.empty()) report.warn("state", options.state_dir_exposure, {});
  if (options.state_dir_owner.empty()) return;
  const std::string detail = options.state_dir + " belongs to " + options.state_dir_owner;
  if (::geteuid() == 0) return report.ok("state", detail + ", who is to run the daemon then");
  report.warn("state", detail + ", and not to who runs this check",
              "the daemon has to run as " + options.state_dir_owner +
                  ", and so has this check, to see what it will see; or chown the folder");
}

// One address after the other, each through a transport of its own, since one for all of them
// would hide an address that is down behind one that is up.
Reached check_addresses(const net::Options& consul, const Console& console, Report& report) {
  Reached reached;
  std::vector<std::pair<std::string, Error>> down;
  for (const std::string& address : consul.addresses) {
    net::Options alone = consul;
    alone.addresses = {address};
    auto opened = net::Transport::open(std::move(alone));
    if (!opened) {
      down.emplace_back(address, opened.error());
      continue;
    }
    auto transport = patient(std::move(*opened), {address}, console);
    Store store{*transport};
    const auto leader = store.cluster_leader();
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
      report.fail("consul", detail + "; the cluster has no leader",
                  "an election takes seconds; if it stays so, too few servers are up",
                  ErrorCode::kUnavailable);
      continue;
    }
    detail += "; the cluster's leader is " + *leader;
    if (agent && is_old(agent->version)) {
      report.warn("consul", detail, "lictor is made for Consul 1.8 and newer");
    } else {
      report.ok("consul", detail);
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
      report.warn("consul", error.message, "the other addresses serve meanwhile");
    } else {
      report.fail("consul", error);
    }
  }
  return reached;
}

void check_service(Store& store, Report& report) {
  const auto may = store.may_write("service", "lictor");
  if (!may) return;  // this Consul does not tell
  if (*may) return report.ok("service", "the token may register the service lictor");
  report.fail("service", "the token may not register the service lictor",
              R"(the daemon needs: service "lictor" { policy = "write" }; or set consul.register )"
              "to false",
              ErrorCode::kPermissionDenied);
}

}  // namespace

Result<int> check(Console& console, const CheckOptions& options, bool json) {
  Report report;
  check_configuration(options, report);
  if (!options.error) {
    check_state_dir(options, report);
    console.progress("asking Consul...");
    const Reached reached = check_addresses(options.consul, console, report);
    if (reached.transport) {
      Store store{*reached.transport};
      if (options.serves && options.registers) check_service(store, report);
      for (const CheckOptions::Queue& queue : options.queues) {
        check_queue(store, queue, reached.node, options.serves, report);
      }
    }
    console.end_progress();
  }
  if (json) {
    console.print(report.json());
  } else {
    console.print(report.page());
  }
  const auto failure = report.first_failure();
  return failure ? exit_code(*failure) : kDone;
}

}  // namespace lictor::cli
