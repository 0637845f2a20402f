#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/check.h"
#include "client/schedules.h"

namespace lictor::cli {
namespace {

using client::StoredSchedule;

constexpr std::size_t kNamed = 10;  // at most so many get a finding of their own

class ScheduleCheck {
 public:
  ScheduleCheck(const CheckOptions::Queue& queue, const cluster::TypeFault& type_fault,
                Report& report)
      : queue_(queue), type_fault_(type_fault), report_(report) {}

  void run(const client::Schedules::Listed& listed, bool serves) {
    for (const StoredSchedule& stored : listed.schedules) check_owner(stored);
    for (const cluster::Finding& finding :
         cluster::diagnose(listed.schedules, type_fault_, wall_now())) {
      if (++found_ <= kNamed) report_.add(name(), finding);
    }
    if (serves && !listed.hidden) check_missing(listed.schedules);
    if (found_ > kNamed) {
      report_.warn(name(), fmt::format("{} more like these", found_ - kNamed),
                   "\"lictor schedule list\" shows them");
    }
    if (found_ == 0 && !listed.schedules.empty()) {
      report_.ok(name(), counted(listed.schedules.size(), "schedule"));
    }
  }

 private:
  [[nodiscard]] std::string name() const { return queue_.name + ": schedules"; }

  void warn(const std::string& schedule, const std::string& what, const std::string& remedy) {
    if (++found_ <= kNamed) report_.warn(name(), "schedule \"" + schedule + "\": " + what, remedy);
  }

  void check_missing(const std::vector<StoredSchedule>& stored) {
    for (const auto& configured : queue_.options.schedules) {
      const std::string& name = configured.first;
      if (std::any_of(stored.begin(), stored.end(),
                      [&](const StoredSchedule& each) { return each.name == name; })) {
        continue;
      }
      warn(name, "the configuration has it, and Consul does not",
           "the leader writes it within seconds; if it stays away, the leader runs with another "
           "configuration: \"lictor members\" tells, \"systemctl reload lictor\" reads it again");
    }
  }

  // The configuration has one of the name, which another client wrote.
  void check_owner(const StoredSchedule& stored) {
    const bool configured = stored.definition.has_value() && !stored.definition->configured.empty();
    if (configured || !queue_.options.schedules.contains(stored.name)) return;
    warn(stored.name,
         fmt::format("the configuration has a schedule of this name, which is not used: another "
                     "client wrote {}",
                     stored.key),
         fmt::format("\"lictor schedule remove {}\" lets the leader write that of the "
                     "configuration; else take it out of the configuration",
                     stored.name));
  }

  const CheckOptions::Queue& queue_;
  const cluster::TypeFault& type_fault_;
  Report& report_;
  std::size_t found_ = 0;
};

}  // namespace

void check_schedules(Store& store, const CheckOptions::Queue& queue, bool serves,
                     const cluster::TypeFault& type_fault, Report& report) {
  auto listed = client::Schedules(store, queue.layout).list();
  if (!listed) return;  // check_rights() reports it
  ScheduleCheck{queue, type_fault, report}.run(*listed, serves);
}

}  // namespace lictor::cli
