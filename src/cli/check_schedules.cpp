// The schedules of a queue for "lictor check": the findings of cluster/diagnosis.h, and differences
// between the configuration of this host and Consul. The leader writes the schedules of its
// configuration, and leaves alone a record that another client wrote under the same name. So a
// schedule that does not work as the file says shows here.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/check.h"
#include "client/schedules.h"

namespace lictor::cli {
namespace {

using client::StoredSchedule;

constexpr std::size_t kNamed = 10;  // at most so many get a line of their own

cluster::Finding warning(const std::string& schedule, const std::string& what, std::string remedy) {
  return {"", cluster::Finding::Severity::kWarning, "schedule \"" + schedule + "\": " + what,
          std::move(remedy)};
}

// The schedules of the configuration that are not there, or whose names another client has taken.
cluster::Findings check_configured(const CheckOptions::Queue& queue,
                                   const client::Schedules::Listed& listed, bool serves) {
  cluster::Findings found;
  for (const auto& configured : queue.options.schedules) {
    const std::string& name = configured.first;
    const auto stored = std::find_if(listed.schedules.begin(), listed.schedules.end(),
                                     [&](const StoredSchedule& each) { return each.name == name; });
    if (stored == listed.schedules.end()) {
      if (!serves || listed.hidden) continue;
      found.push_back(warning(
          name, "the configuration has it, and Consul does not",
          "the leader writes it within seconds; if it stays away, the leader runs with another "
          "configuration: \"lictor members\" tells, \"systemctl reload lictor\" reads it again"));
    } else if (!stored->definition || stored->definition->configured.empty()) {
      found.push_back(
          warning(name,
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

}  // namespace

void check_schedules(Store& store, const CheckOptions::Queue& queue, bool serves,
                     const cluster::TypeFault& type_fault, Report& report) {
  const auto listed = client::Schedules(store, queue.layout).list();
  if (!listed) return;  // check_rights() reports it
  const std::string name = queue.name + ": schedules";
  cluster::Findings found = check_configured(queue, *listed, serves);
  for (cluster::Finding& each : cluster::diagnose(listed->schedules, type_fault, wall_now())) {
    found.push_back(std::move(each));
  }
  for (std::size_t i = 0; i < std::min(found.size(), kNamed); ++i) report.add(name, found[i]);
  if (found.size() > kNamed) {
    report.warn(name, fmt::format("{} more like these", found.size() - kNamed),
                "\"lictor schedule list\" shows them");
  }
  if (found.empty() && !listed->schedules.empty()) {
    report.ok(name, counted(listed->schedules.size(), "schedule"));
  }
}

}  // namespace lictor::cli
