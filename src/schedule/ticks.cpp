#include "schedule/ticks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/siphash.h"
#include "base/time_text.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono;

constexpr seconds kTick{1};
constexpr seconds kLongestShift = hours{52};  // from -26 to 26 hours (RFC 8536, 3.2)

LocalTime shown(Tick at, seconds offset) { return LocalTime{at.time_since_epoch() + offset}; }
Tick instant(LocalTime time, seconds offset) { return Tick{time.time_since_epoch() - offset}; }

// The ticks of a cron expression within [from, before), in which the clock is not changed, though
// it may have been at `from` or shortly before:
//
//   before the change   |--- repeated ---|        repeated: the clock went back at `period.begin`,
//   after it            |--- repeated ---|-->     and shows these times again
//
//   before the change   --->|                     skipped: the clock jumped forward at
//   after it                |--- skipped ---|-->  `period.begin` over these times
class Span {
 public:
  Span(const Cron& cron, const Zone& zone, Tick from, Tick until)
      : cron_(cron),
        period_(zone.period_at(from)),
        from_(from),
        before_(std::min(period_.end, until + kTick)),
        old_offset_(period_.offset) {
    if (period_.begin > kFirstTick && from - period_.begin < kLongestShift) {
      old_offset_ = zone.period_at(period_.begin - kTick).offset;
    }
  }

  [[nodiscard]] Tick end() const { return before_; }

  [[nodiscard]] std::optional<Tick> first() const {
    std::optional<Tick> found;
    if (const auto time = cron_.next(regular_begin(), regular_end())) {
      found = instant(*time, period_.offset);
    }
    if (const auto skipped = first_skipped(); skipped && (!found || *skipped < *found)) {
      found = skipped;
    }
    return found;
  }

 private:
  [[nodiscard]] bool jumped() const { return period_.offset > old_offset_; }

  // The times that the clock shows, without those that it repeats if they don't count.
  [[nodiscard]] LocalTime regular_begin() const {
    const LocalTime begin = shown(from_, period_.offset);
    if (cron_.repeats() || period_.offset >= old_offset_) return begin;
    return std::max(begin, shown(period_.begin, old_offset_));
  }
  [[nodiscard]] LocalTime regular_end() const { return shown(before_, period_.offset); }

  // The skipped times whose instants, as if the clock had not jumped, are in [from, before).
  [[nodiscard]] LocalTime skipped_begin() const { return shown(from_, old_offset_); }
  [[nodiscard]] LocalTime skipped_end() const {
    return std::min(shown(period_.begin, period_.offset), shown(before_, old_offset_));
  }

  [[nodiscard]] std::optional<Tick> first_skipped() const {
    if (!jumped()) return std::nullopt;
    if (cron_.repeats()) {
      const auto time = cron_.next(skipped_begin(), skipped_end());
      return time ? std::optional{instant(*time, old_offset_)} : std::nullopt;
    }
    if (from_ != period_.begin) return std::nullopt;  // the instant of the jump is over
    const bool any =
        cron_.next(shown(period_.begin, old_offset_), shown(period_.begin, period_.offset))
            .has_value();
    return any ? std::optional{period_.begin} : std::nullopt;
  }

  const Cron& cron_;
  Zone::Period period_;
  Tick from_, before_;
  seconds old_offset_;  // before the change at period_.begin
};

// The first tick in [from, until].
std::optional<Tick> first_tick(const Cron& cron, const Zone& zone, Tick from, Tick until) {
  while (from <= until) {
    const Span span{cron, zone, from, until};
    if (const auto found = span.first()) return found;
    from = span.end();
  }
  return std::nullopt;
}

const Zone& zone_of(const Plan& plan) {
  static const Zone utc;
  return plan.zone ? *plan.zone : utc;
}

tl::unexpected<Error> bad_plan(std::string message) {
  return fail(ErrorCode::kInvalid, std::move(message));
}

}  // namespace

Result<Schedule> Schedule::make(Plan plan) {
  if (const auto* every = std::get_if<Every>(&plan.rule); every && every->interval < kTick) {
    return bad_plan("every: expected 1s or more, got \"" + format_duration(every->interval) + '"');
  }
  if (auto* at = std::get_if<At>(&plan.rule)) {
    std::sort(at->times.begin(), at->times.end());
    at->times.erase(std::unique(at->times.begin(), at->times.end()), at->times.end());
    if (at->times.empty()) return bad_plan("at: expected at least one time, got none");
  }
  if (plan.start && plan.end && *plan.end < *plan.start) {
    return bad_plan("end: expected a time from start (" + tick_text(*plan.start) + ") on, got \"" +
                    tick_text(*plan.end) + '"');
  }
  Schedule schedule{std::move(plan)};
  if (schedule.next_after(kFirstTick)) return schedule;
  const Plan& made = schedule.plan_;
  std::string span;
  if (made.start) span += " from start (" + tick_text(*made.start) + ')';
  if (made.end) span += " until end (" + tick_text(*made.end) + ')';
  return bad_plan("never fires: expected at least one tick" + span + ", got none");
}

Tick Schedule::anchor() const { return plan_.start.value_or(Tick{}); }

std::optional<Tick> Schedule::next_after(Tick time) const {
  Tick from = std::clamp(time, kFirstTick, kLastTick) + kTick;
  if (plan_.start) from = std::max(from, *plan_.start);
  const Tick until = std::min(plan_.end.value_or(kLastTick), kLastTick);
  return from <= until ? first_in(from, until) : std::nullopt;
}

std::size_t Schedule::count(Tick after, Tick until, std::size_t most) const {
  std::size_t count = 0;
  for (auto tick = next_after(after); tick && *tick <= until && count < most;
       tick = next_after(*tick)) {
    ++count;
  }
  return count;
}

std::optional<seconds> Schedule::shortest_gap() const {
  constexpr int kLookedAt = 1000;
  if (const auto* every = std::get_if<Every>(&plan_.rule)) {
    const auto first = next_after(kFirstTick);
    return first && next_after(*first) ? std::optional{every->interval} : std::nullopt;
  }
  std::optional<seconds> shortest;
  auto tick = next_after(Tick{});  // before 1970 zones keep their towns' own time
  for (int i = 0; tick && i < kLookedAt; ++i) {
    const auto next = next_after(*tick);
    if (next) shortest = std::min(shortest.value_or(seconds::max()), *next - *tick);
    tick = next;
  }
  return shortest;
}

// The first tick in [from, until].
std::optional<Tick> Schedule::first_in(Tick from, Tick until) const {
  if (const auto* cron = std::get_if<Cron>(&plan_.rule)) {
    return first_tick(*cron, zone_of(plan_), from, until);
  }
  std::optional<Tick> found;
  if (const auto* every = std::get_if<Every>(&plan_.rule)) {
    const auto past = std::max(from - anchor(), seconds{0});
    const auto number = (past + every->interval - kTick) / every->interval;  // rounded up
    found = anchor() + number * every->interval;
  } else {
    const auto& times = std::get<At>(plan_.rule).times;
    const auto next = std::lower_bound(times.begin(), times.end(), from);
    if (next != times.end()) found = *next;
  }
  return found && *found <= until ? found : std::nullopt;
}

std::vector<Tick> Schedule::newest(Tick after, Tick until, std::size_t most) const {
  std::vector<Tick> ticks;
  if (most == 0) return ticks;
  if (count(after, until, most + 1) > most) {
    // The latest `after` with as many ticks as wanted: each second has at most one.
    Tick enough = std::max(after, kFirstTick);
    Tick too_late = std::min(until, kLastTick);
    while (too_late - enough > kTick) {
      const Tick middle = enough + (too_late - enough) / 2;
      (count(middle, until, most) == most ? enough : too_late) = middle;
    }
    after = enough;
  }
  for (auto tick = next_after(after); tick && *tick <= until; tick = next_after(*tick)) {
    ticks.push_back(*tick);
  }
  return ticks;
}

// The ticks on time are the newest ones, so the missed ones that are made are the newest before
// them: one list of the newest covers both, and its length is all that the policy decides.
Due due_ticks(const Schedule& schedule, const Missed& missed, Tick last, Tick now,
              Tick late_until) {
  Due due;
  const auto first = schedule.next_after(last);
  if (!first || *first > now) return due;

  const Tick on_time_after = std::max(last, late_until);
  const std::size_t on_time = schedule.count(on_time_after, now);
  std::size_t late = 0;
  switch (missed.policy) {
    case Missed::Policy::kSkip:
      break;
    case Missed::Policy::kOnce:
      late = on_time == 0 ? 1 : 0;
      break;
    case Missed::Policy::kAll:
      late =
          schedule.count(std::max(last, now - missed.max_age - kTick), on_time_after, missed.limit);
      break;
  }
  due.make = schedule.newest(last, now, on_time + late);
  due.skipped = schedule.count(last, due.make.empty() ? now : due.make.front() - kTick);
  due.last = due.make.empty() ? schedule.newest(last, now, 1).back() : due.make.back();
  return due;
}

std::string tick_text(Tick tick) {
  std::string text = format_rfc3339(tick);
  return text.replace(text.size() - 5, 5, "Z");  // without ".000"
}

std::string local_text(Tick tick, const Zone& zone) {
  const seconds offset = zone.period_at(tick).offset;
  std::string text = tick_text(tick + offset);
  if (offset == seconds{0}) return text;
  text.pop_back();
  const std::string distance = tick_text(Tick{std::chrono::abs(offset)}).substr(11, 8);
  text += (offset < seconds{0} ? '-' : '+') + distance.substr(0, 5);
  if (!distance.ends_with("00")) text += distance.substr(5);  // a local mean time of old
  return text;
}

std::optional<Tick> parse_tick(std::string_view text) {
  const auto time = parse_rfc3339(text);
  if (!time || floor<seconds>(*time) != *time) return std::nullopt;
  return floor<seconds>(*time);
}

// ISO 8601's basic form: newer versions of Consul refuse a ":" in the name of a key.
std::string tick_id(std::string_view schedule_name, Tick tick) {
  std::string text = tick_text(tick);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return std::string{schedule_name} + '/' + text;
}

std::optional<TickId> parse_tick_id(std::string_view id) {
  constexpr std::size_t kBasic = std::string_view{"20261124T093000Z"}.size();
  const std::size_t end = id.rfind('/');
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  std::string text{id.substr(end + 1)};
  if (text.size() != kBasic) return std::nullopt;
  for (const std::size_t at : {13U, 11U}) text.insert(at, ":");
  for (const std::size_t at : {6U, 4U}) text.insert(at, "-");
  const auto tick = parse_tick(text);
  return tick ? std::optional{TickId{id.substr(0, end), *tick}} : std::nullopt;
}

milliseconds delay_of(std::string_view schedule_name, milliseconds jitter) {
  if (jitter <= milliseconds{0}) return milliseconds{0};
  // The key that also maps tasks to partitions.
  constexpr SipKey kKey{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
  const std::uint64_t hash = siphash<2, 4>(kKey, schedule_name);
  return milliseconds{hash % static_cast<std::uint64_t>(jitter.count())};
}

}  // namespace lictor::schedule
