#include "schedule/cron_ticks.h"

#include <algorithm>

namespace lictor::schedule {
namespace {

using namespace std::chrono;

constexpr seconds kTick{1};
constexpr seconds kLongestShift = hours{52};  // from -26 to 26 hours (RFC 8536, 3.2)

LocalTime shown(Tick at, seconds offset) { return LocalTime{at.time_since_epoch() + offset}; }
Tick instant(LocalTime time, seconds offset) { return Tick{time.time_since_epoch() - offset}; }

// What a cron expression fires at within [from, before), in which the clock is not changed, though
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

  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t count = 0;
    if (regular_begin() < regular_end()) count = cron_.count(regular_begin(), regular_end());
    if (!jumped()) return count;
    if (!cron_.repeats()) {
      const auto at_jump = first_skipped();
      return at_jump && !is_regular(*at_jump) ? count + 1 : count;
    }
    // One by one, since they may fall on regular ones: they are few.
    for (LocalTime time = skipped_begin(); time < skipped_end(); time += kTick) {
      const auto next = cron_.next(time, skipped_end());
      if (!next) break;
      time = *next;
      if (!is_regular(instant(time, old_offset_))) ++count;
    }
    return count;
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

  [[nodiscard]] bool is_regular(Tick at) const { return cron_.matches(shown(at, period_.offset)); }

  // The times skipped whose instants, as if the clock had not jumped, are in [from, before).
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

}  // namespace

std::optional<Tick> first_tick(const Cron& cron, const Zone& zone, Tick from, Tick until) {
  while (from <= until) {
    const Span span{cron, zone, from, until};
    if (const auto found = span.first()) return found;
    from = span.end();
  }
  return std::nullopt;
}

std::uint64_t count_ticks(const Cron& cron, const Zone& zone, Tick from, Tick until) {
  std::uint64_t count = 0;
  while (from <= until) {
    const Span span{cron, zone, from, until};
    count += span.count();
    from = span.end();
  }
  return count;
}

}  // namespace lictor::schedule
