#pragma once

// Recurring tasks (schedules.md) as Consul holds them. A leader makes their ticks.
//
//   add            schedules/<name> -- cas = 0
//   replace        schedules/<name> -- read, cas; keeps what was done if the rule is the same
//   remove         schedules/<name> -- read, delete-cas
//   pause, resume  schedules/<name> -- read, change, cas, again if it changed meanwhile
//   run now        schedules/<name> -- read, cas with lastTask, and cas tasks/<name>@<second> = 0

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "client/store.h"
#include "core/options.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "schedule/ticks.h"
#include "schedule/zone.h"
#include "wire/layout.h"

namespace lictor::client {

/// A schedule as it is stored.
struct StoredSchedule {
  std::string name;
  std::string key;
  std::string record;
  std::uint64_t flags = 0;  ///< of the key; each rewrite keeps them
  std::uint64_t create_index = 0, modify_index = 0;
  /// The definition, or why it makes no ticks.
  Result<schedule::Definition> definition = fail(ErrorCode::kInvalid, "");
  // Read from the record, even if that is no valid schedule; empty if it lacks the field.
  std::string rule;          ///< "*/5 * * * *", "every 10m", "at 3 times"
  std::string timezone;      ///< "Europe/Rome"
  std::string type;          ///< of its tasks
  std::string no_effect;     ///< a field that has no effect and was meant to have one
  bool from_config = false;  ///< a leader wrote it as its configuration says
};

/// The effect of this name in newer versions of Consul. Empty if there is none.
[[nodiscard]] std::string name_note(const std::string& schedule_name);

enum class ScheduleState { kActive, kPaused, kEnded, kBad };

/// "active"
[[nodiscard]] std::string_view state_name(ScheduleState state);

/// kEnded: no tick comes after `now`.
[[nodiscard]] ScheduleState state_of(const StoredSchedule& schedule, WallTime now);

/// The ticks that come after `now`, at most `most`, as if the schedule were not paused. None comes
/// before the lastTick.
[[nodiscard]] std::vector<schedule::Tick> ticks_after(const schedule::Definition& schedule,
                                                      WallTime now, std::size_t most);

/// The due time of the last task that the schedule made. std::nullopt if it has made none. (The
/// ticks up to lastTick are decided about, also where none made a task.)
[[nodiscard]] std::optional<schedule::Tick> last_made(const StoredSchedule& schedule);

/// The name of the schedule that made the task of this id, within the id. Empty: none did.
[[nodiscard]] std::string_view made_by(std::string_view task_id);

/// A schedule in a list.
[[nodiscard]] nlohmann::ordered_json schedule_json(const StoredSchedule& schedule, WallTime now);

/// The record that a leader is to write for the schedule `name` of the configuration, `record` a
/// JSON object. Errors: kInvalid, also for a field that has no effect and for one that the leader
/// writes; kTooLarge.
[[nodiscard]] Result<core::ConfiguredSchedule> configured_schedule(const wire::Layout& layout,
                                                                   const std::string& name,
                                                                   const std::string& record);

/// Ticks as JSON: in UTC ("tick") and on the clock of the schedule's zone ("local").
[[nodiscard]] nlohmann::ordered_json ticks_json(const std::vector<schedule::Tick>& ticks,
                                                const schedule::Definition& schedule);

/// The schedules of a queue. Each call that asks Consul blocks; the errors are those of the Store.
/// Not thread-safe.
class Schedules {
 public:
  /// `store` must outlive it.
  Schedules(Store& store, wire::Layout layout) : store_(store), layout_(std::move(layout)) {}

  struct Listed {
    std::vector<StoredSchedule> schedules;  ///< in the order of the keys
    bool hidden = false;                    ///< there may be more that the token may not read
  };
  [[nodiscard]] Result<Listed> list();

  /// Errors: kNotFound, with the nearest name if one is near.
  [[nodiscard]] Result<StoredSchedule> get(const std::string& name);

  /// Writes the record as it is if there is no such schedule. Errors: kInvalid, kTooLarge, a leader
  /// cannot use it; kConflict.
  [[nodiscard]] Result<StoredSchedule> add(const std::string& name, const std::string& record);
  /// Writes the record, in the place of the old one if there is one. If both have the same rule,
  /// the old one's lastTick and lastTask stay, and so does its pause unless the new one names it.
  [[nodiscard]] Result<StoredSchedule> replace(const std::string& name, const std::string& record);

  /// Returns the removed schedule.
  [[nodiscard]] Result<StoredSchedule> remove(const std::string& name);

  /// False: it needed no change. Errors: kInvalid, the stored record cannot be read.
  [[nodiscard]] Result<bool> set_paused(const std::string& name, bool paused);

  /// Writes a task that is due `now`, also while the schedule is paused or its last task runs.
  /// Returns its id, which no other task of the schedule had or will have: that of the first second
  /// from now on that is no tick and is later than the lastTick and the lastTask. Errors: kInvalid,
  /// as above; kConflict, each second is a tick.
  [[nodiscard]] Result<std::string> run(const std::string& name, WallTime now);

  /// Reads an entry below the prefix. Does not ask Consul.
  [[nodiscard]] StoredSchedule view(wire::KvEntry entry);

 private:
  [[nodiscard]] Result<StoredSchedule> readable(const std::string& name);
  [[nodiscard]] Error not_found(const std::string& name);

  Store& store_;
  wire::Layout layout_;
  schedule::Zones zones_;
};

}  // namespace lictor::client
