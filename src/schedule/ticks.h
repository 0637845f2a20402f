#pragma once

// The times at which a recurring task is due. Pure: all hosts compute the same ticks from the same
// schedule and the same tzdata.
//
// A tick is an instant to the second. It names its task (tick_id()), and lastTick in the schedule's
// record, written together with the task, says that it was made. So nobody makes a tick twice,
// whatever jitter and clocks do.
//
// When a zone's clock is changed, the effect on a cron expression depends on its hour field:
//
//                              the clock jumps forward        the clock goes back
//   it names its hours         what it skips fires once,      what it shows twice fires the
//   ("30 2 * * *")             at the instant of the jump     first time only
//   it repeats through the     what it skips fires as if      what it shows twice fires
//   day ("*/5 * * * *")        the clock had not jumped       both times
//
// An expression with hours loses and doubles no time of day. An expression that repeats (its hour
// field has "*" or a step, or lists all hours: Cron::repeats()) goes on by elapsed time where the
// shift is a multiple of its step: an hour, for "*/5 * * * *". Ticks that fall on the same instant
// are one tick. Vixie's cron does the same with an expression without "*". With "*" in the hour or
// minute field it runs when the clock shows a match, so "0 */2 * * *" loses what a jump skips.
//
// Examples for Europe/Rome, where 02:00 to 03:00 is skipped on 29 March 2026 and comes twice on 25
// October 2026:
//
//   30 2 * * *     29 March at 03:00 CEST (01:00 UTC); 25 October at 02:30 CEST (00:30 UTC)
//   0,30 2 * * *   29 March once, at 03:00 CEST; 25 October at 02:00 and 02:30 CEST
//   */30 * * * *   every half hour of elapsed time on both days
//   0 */2 * * *    29 March at 00:00 CET, 03:00 CEST, 04:00 CEST; 25 October at 00:00 CEST, 02:00
//                  CEST, 02:00 CET, 04:00 CET
//
// A whole day that a zone skips (Pacific/Apia, 30 December 2011) is such a jump. `every` counts
// elapsed time and `at` names instants, so the zone does not matter to them.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lictor/result.h"
#include "lictor/time.h"
#include "schedule/cron.h"
#include "schedule/zone.h"

namespace lictor::schedule {

/// Each multiple of `interval` (1 s or more) since the start of the schedule, or since the epoch.
struct Every {
  std::chrono::seconds interval{};
};

/// The given instants, in any order.
struct At {
  std::vector<Tick> times;
};

/// The parts of a schedule.
struct Plan {
  std::variant<Cron, Every, At> rule;
  std::shared_ptr<const Zone> zone;  // of a cron expression; null: UTC
  std::optional<Tick> start;         // no tick before it
  std::optional<Tick> end;           // no tick after it; one at `end` counts
};

/// The ticks of a plan. Immutable; any thread may read it.
class Schedule {
 public:
  static constexpr std::size_t kMostCounted = 10'000;

  /// Errors: kInvalid, with the field: an interval below 1 s, an end before the start, or no tick
  /// at all between start and end.
  [[nodiscard]] static Result<Schedule> make(Plan plan);

  /// The first tick after `time`; std::nullopt after the last one, or after the year 9999. Takes
  /// below a microsecond for most expressions.
  [[nodiscard]] std::optional<Tick> next_after(Tick time) const;
  /// The number of ticks in (after, until]. Visits each, so it counts up to `most`.
  [[nodiscard]] std::size_t count(Tick after, Tick until, std::size_t most = kMostCounted) const;
  /// The newest ticks in (after, until], at most `most`, the oldest first.
  [[nodiscard]] std::vector<Tick> newest(Tick after, Tick until, std::size_t most) const;

  /// The shortest time between two ticks; for a cron expression among its first thousand.
  /// std::nullopt if there is only one tick.
  [[nodiscard]] std::optional<std::chrono::seconds> shortest_gap() const;

  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  explicit Schedule(Plan plan) : plan_(std::move(plan)) {}

  [[nodiscard]] Tick anchor() const;
  [[nodiscard]] std::optional<Tick> first_in(Tick from, Tick until) const;

  Plan plan_;
};

/// The policy for ticks that nobody made in time, since no daemon led or the schedule was paused.
struct Missed {
  enum class Policy {
    kSkip,  // nothing
    kOnce,  // make the newest one
    kAll,   // make all of them, but no more than `limit` and none older than `max_age`
  };
  Policy policy = Policy::kSkip;
  // A queue with one slot works this off in a reasonable time, and one transaction of Consul holds
  // it (64 operations before 1.14), so that a long outage does not end in a flood.
  std::uint32_t limit = 50;
  std::chrono::seconds max_age = std::chrono::hours{24};  // older results are of little use
};

struct Due {
  std::vector<Tick> make;     // the oldest first
  std::uint64_t skipped = 0;  // ticks in (last, now] that are not made, as count() has it
  std::optional<Tick> last;   // the newest tick in (last, now], the new lastTick; none: no tick
};

/// Decides about the ticks in (last, now]. Those after `late_until` are on time and are all made;
/// the others are missed and `missed` decides, where kOnce is content with a tick on time. A `now`
/// before `last`, from a clock that was set back, gives nothing, so no tick comes twice.
[[nodiscard]] Due due_ticks(const Schedule& schedule, const Missed& missed, Tick last, Tick now,
                            Tick late_until);

/// Whether a tick makes a task while the schedule's last task waits or runs.
enum class Overlap {
  kSkip,   // no
  kQueue,  // yes: the tasks share a serialKey, so they run one after the other
  kAllow,  // yes
};

/// A recurring task as its record says it (wire/schedule_record).
struct Definition {
  Schedule schedule;
  std::string rule;  // the members that decide its ticks, as they were written; shows a new rule
  Missed missed;
  Overlap overlap = Overlap::kSkip;
  std::chrono::milliseconds jitter{};
  bool paused = false;
  std::optional<Tick> last_tick;  // the ticks up to it are decided about
  std::string last_task;          // the id of the task that was made last; empty: none was
  std::string task;               // the template: a JSON object
  // Written by a leader whose configuration has it: all that the configuration says, except
  // `paused`. Empty: another client's.
  std::string configured{};
};

/// "2026-11-24T09:30:00Z"
[[nodiscard]] std::string tick_text(Tick tick);
/// The tick on the zone's clock: "2026-11-24T10:30:00+01:00"; of UTC as above.
[[nodiscard]] std::string local_text(Tick tick, const Zone& zone);
/// std::nullopt if `text` is no RFC 3339 time, or names a fraction of a second.
[[nodiscard]] std::optional<Tick> parse_tick(std::string_view text);
/// "backup/20261124T093000Z"
[[nodiscard]] std::string tick_id(std::string_view schedule_name, Tick tick);
struct TickId {
  std::string_view schedule_name;  ///< within the text that was read
  Tick tick;
};
/// std::nullopt if `id` is no schedule's task.
[[nodiscard]] std::optional<TickId> parse_tick_id(std::string_view id);

/// How long after its ticks the schedule's tasks become due: from 0 to below `jitter`, the same on
/// all hosts. It depends on the name alone: schedules spread out, while the tasks of one keep their
/// order and distance.
[[nodiscard]] std::chrono::milliseconds delay_of(std::string_view schedule_name,
                                                 std::chrono::milliseconds jitter);

}  // namespace lictor::schedule
