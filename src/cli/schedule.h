#pragma once

// Shared by the files of `schedule`.
//
//   schedule.cpp        list, show, run, remove, pause, resume: by the name of a schedule
//   schedule_rule.cpp   add, next: from a rule that flags describe
//   client/schedules.h  the records in Consul, which all of them read and write
//
// A schedule has two owners. Its record in Consul is in force. A schedule of the configuration is
// written by the leader, which undoes a change that its configuration contradicts. So pause, resume
// and remove look where the schedule came from, and refuse a change that will not last, or say so.

#include <optional>
#include <string>

#include "cli/command.h"
#include "client/schedules.h"
#include "schedule/ticks.h"

namespace lictor::cli {

/// The commands that take a rule: add and next.
void add_schedule_add(Commands& to);
void add_schedule_next(Commands& to);

/// `schedule "nightly"`
[[nodiscard]] std::string named_schedule(const std::string& name);
/// "2026-11-24T09:30:00Z (in 3h)"; empty without a tick.
[[nodiscard]] std::string tick_line(const std::optional<schedule::Tick>& tick, WallTime now);
/// "30 2 * * *, Europe/Rome"
[[nodiscard]] std::string rule_line(const client::StoredSchedule& stored);

/// The schedule of this name. With --json, a missing schedule gives a document, too.
[[nodiscard]] Result<client::StoredSchedule> get_schedule(const Client& client,
                                                          client::Schedules& schedules,
                                                          const std::string& name);

}  // namespace lictor::cli
