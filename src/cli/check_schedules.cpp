#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/check_report.h"
#include "client/schedules.h"
#include "schedule/ticks.h"

namespace lictor::cli {
namespace {

using client::StoredSchedule;

constexpr std::size_t kNamed = 10;                   // at most so many get a finding of their own
constexpr auto kClockGap = std::chrono::minutes{1};  // more than hosts' clocks differ with NTP

class ScheduleCheck {
 public:
  ScheduleCheck(const CheckOptions::Queue& queue, const TypeFault& type_fault, Report& report)
      : queue_(queue), type_fault_(type_fault), report_(report) {}

  void run(const client::Schedules::Listed& listed, bool serves) {
    for (const StoredSchedule& stored : listed.schedules) check(stored);
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
    if (++found_ <= kNamed) report_.warn(name(), '"' + schedule + "\": " + what, remedy);
  }

  void check(const StoredSchedule& stored) {
    check_owner(stored);
    if (!stored.definition) {
      return warn(
          stored.name, "it makes no tasks: " + stored.definition.error().message,
          fmt::format("correct {}, or \"lictor schedule remove {}\"", stored.key, stored.name));
    }
    const auto last = stored.definition->last_tick;
    if (last && *last > now_ + kClockGap) {
      warn(stored.name,
           fmt::format("its lastTick, {}, is ahead of this host's clock ({}), so it makes no "
                       "tasks until then",
                       schedule::tick_text(*last), relative_time(*last, now_)),
           fmt::format("if this clock is right, the leader's was wrong: set lastTick in {} to "
                       "the time now, and check the hosts' clocks",
                       stored.key));
    }
    if (!stored.odd.empty()) warn(stored.name, stored.odd, "correct " + stored.key);
    if (const std::string note = client::name_note(stored.name); !note.empty()) {
      warn(stored.name, note, R"(add it under a name of letters, digits and ",_./-")");
    }
    if (const auto fault = type_fault_(stored.type)) warn(stored.name, fault->what, fault->remedy);
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
           "configuration: \"lictor members\" tells, \"systemctl reload lictor\" reads it anew");
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
  const TypeFault& type_fault_;
  Report& report_;
  const WallTime now_ = wall_now();
  std::size_t found_ = 0;
};

}  // namespace

void check_schedules(Store& store, const CheckOptions::Queue& queue, bool serves,
                     const TypeFault& type_fault, Report& report) {
  auto listed = client::Schedules(store, queue.layout).list();
  if (!listed) return;  // check_rights() reports it
  ScheduleCheck{queue, type_fault, report}.run(*listed, serves);
}

}  // namespace lictor::cli
