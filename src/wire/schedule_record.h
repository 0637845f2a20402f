#pragma once

// Recurring tasks (schedules.md): the KV value of schedules/<name> to a schedule, and the
// records of its tasks. Never throws; accepts any bytes.
//
// A schedule's record has three authors: its owner (rule, template), the leaders (lastTick,
// lastTask) and the operators (paused). Each changes its own members and leaves the others, to the
// byte. fromConfig marks a record that a leader wrote from its configuration; the configuration
// then decides all members but lastTick, lastTask and, unless it sets that, paused.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.h"
#include "lictor/result.h"
#include "schedule/ticks.h"
#include "schedule/zone.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::wire {

/// The most missed ticks that a schedule can ask for at once (missedLimit).
inline constexpr std::uint32_t kMaxMissedLimit = 1'000;

/// Reads the record of the schedule `name`. Reads the file of its time zone, unless `zones` has it.
/// Errors: kInvalid, with the field, the expected and the actual value, also for a schedule that
/// never fires and for a template that does not make a task.
[[nodiscard]] Result<schedule::Definition> read_schedule(std::string_view name,
                                                         std::string_view record,
                                                         schedule::Zones& zones);

/// Reads listings of schedules; a version that was in the listing before is not read again.
/// Thread-safe.
class ScheduleCache {
 public:
  /// The entries of a listing as the core knows them, without folders.
  [[nodiscard]] std::vector<core::SchedulesListed::Entry> read(const Layout& layout,
                                                               std::vector<KvEntry> listing);
  /// Reads everything again next time: tzdata may have been updated.
  void forget();

 private:
  std::mutex mutex_;
  schedule::Zones zones_;
  std::map<std::string, core::SchedulesListed::Entry> known_;  // by key
};

/// The JSON object with the member's value, JSON too, set or added; the rest copied to the byte.
[[nodiscard]] std::string with_member(std::string_view object, std::string_view name,
                                      std::string_view value);
/// The record with its lastTick set, and its lastTask unless `task_id` is empty.
/// read_schedule() has accepted `record`.
[[nodiscard]] std::string with_last_tick(std::string_view record, schedule::Tick last,
                                         std::string_view task_id);
/// The record with only its lastTask set.
[[nodiscard]] std::string with_last_task(std::string_view record, std::string_view task_id);
/// The record with `paused` set.
[[nodiscard]] std::string with_paused(std::string_view record, bool paused);

/// The record with fromConfig set, which marks records that a leader wrote from its configuration.
[[nodiscard]] std::string as_configured(std::string_view record);
/// Whether the record, a JSON object, has a member `name` that is not null.
[[nodiscard]] bool has_member(std::string_view record, std::string_view name);

/// The record of the task that `tick` makes, under the key of schedule::tick_id(): the template
/// with each "{tick}" in its strings replaced, its executeAt (the tick and the jitter), and with
/// schedule::Overlap::kQueue a serialKey, unless it has its own.
[[nodiscard]] std::string tick_task(std::string_view name, const schedule::Definition& schedule,
                                    schedule::Tick tick);

}  // namespace lictor::wire
