#include "schedule/zone.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono;

constexpr seconds kMostOffset = hours{26};  // RFC 8536, 3.2: from -25 to 26 hours

tl::unexpected<Error> bad_zone_file(const std::string& what) {
  return fail(ErrorCode::kInvalid, "expected a TZif file (RFC 8536), got " + what);
}

// Reads big-endian numbers. Beyond the end it reads 0, so check has() first.
class Bytes {
 public:
  explicit Bytes(std::string_view left) : left_(left) {}
  [[nodiscard]] bool has(std::uint64_t count) const { return left_.size() >= count; }
  [[nodiscard]] std::string_view rest() const { return left_; }
  std::string_view take(std::uint64_t count) {
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(taken.size());
    return taken;
  }
  std::int64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view text = take(bytes);
    const bool negative = !text.empty() && (static_cast<unsigned char>(text.front()) & 0x80U) != 0;
    if (negative) value = ~std::uint64_t{0};
    for (const char c : text) value = value << 8U | static_cast<unsigned char>(c);
    return static_cast<std::int64_t>(value);
  }
  std::uint64_t count() { return static_cast<std::uint32_t>(number(4)); }

 private:
  std::string_view left_;
};

struct Header {
  char version = 0;
  std::uint64_t utc_flags = 0, standard_flags = 0, leaps = 0, changes = 0, types = 0, letters = 0;

  [[nodiscard]] std::uint64_t body_size(std::uint64_t time_size) const {
    return changes * (time_size + 1) + types * 6 + letters + leaps * (time_size + 4) +
           standard_flags + utc_flags;
  }
};

std::optional<Header> take_header(Bytes& bytes) {
  if (!bytes.has(44) || bytes.take(4) != "TZif") return std::nullopt;
  Header header;
  header.version = bytes.take(16).front();
  header.utc_flags = bytes.count();
  header.standard_flags = bytes.count();
  header.leaps = bytes.count();
  header.changes = bytes.count();
  header.types = bytes.count();
  header.letters = bytes.count();
  return header;
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// Takes parts off the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view left) : left_(left) {}

  [[nodiscard]] bool done() const { return left_.empty(); }
  bool take(char c) {
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  // "CET", "<+0530>"
  bool name() {
    const auto letters = std::find_if_not(left_.begin(), left_.end(), is_letter) - left_.begin();
    const std::size_t size = left_.starts_with('<') ? left_.find('>') + 1  // 0: there is none
                                                    : static_cast<std::size_t>(letters);
    if (size < 3) return false;
    left_.remove_prefix(size);
    return true;
  }
  std::optional<unsigned> number(unsigned least, unsigned most) {
    const std::string_view text = left_.substr(0, 4);
    unsigned value = 0;
    const char* const end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
    if (end == text.data() || value < least || value > most) return std::nullopt;
    left_.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  }
  // "-1", "5:30", "+10:30:15"
  std::optional<seconds> time(unsigned most_hours) {
    const bool negative = take('-');
    if (!negative) take('+');
    seconds time{0};
    for (const auto& [unit, most] :
         {std::pair{seconds{hours{1}}, most_hours}, {minutes{1}, 59U}, {seconds{1}, 59U}}) {
      if (unit != hours{1} && !take(':')) break;
      const auto value = number(0, most);
      if (!value) return std::nullopt;
      time += *value * unit;
    }
    return negative ? -time : time;
  }

 private:
  std::string_view left_;
};

std::optional<PosixRule::Day> take_day(Reader& text) {
  using Day = PosixRule::Day;
  Day day;
  day.time = hours{2};
  std::optional<unsigned> number;
  if (text.take('M')) {
    day.kind = Day::Kind::kWeekday;
    const auto month = text.number(1, 12);
    if (!month || !text.take('.')) return std::nullopt;
    const auto week = text.number(1, 5);
    if (!week || !text.take('.')) return std::nullopt;
    day.month = *month;
    day.week = *week;
    number = text.number(0, 6);
  } else if (text.take('J')) {
    day.kind = Day::Kind::kJulian;
    number = text.number(1, 365);
  } else {
    number = text.number(0, 365);
  }
  if (!number) return std::nullopt;
  day.number = *number;
  if (text.take('/')) {
    const auto time = text.time(167);
    if (!time) return std::nullopt;
    day.time = *time;
  }
  return day;
}

}  // namespace

local_seconds PosixRule::Day::in(std::chrono::year year) const {
  const local_days new_year{year / January / 1};
  switch (kind) {
    case Kind::kWeekday: {
      const year_month_weekday_last last{year, std::chrono::month{month},
                                         weekday_last{weekday{number}}};
      const year_month_weekday counted{year, std::chrono::month{month},
                                       weekday_indexed{weekday{number}, week}};
      return local_days{counted.ok() ? local_days{counted} : local_days{last}} + time;
    }
    case Kind::kJulian: {
      const bool after_leap_day = year.is_leap() && number >= 60;
      return new_year + days{static_cast<int>(number) - 1 + (after_leap_day ? 1 : 0)} + time;
    }
    case Kind::kZeroBased:
      break;
  }
  return new_year + days{static_cast<int>(number)} + time;
}

std::optional<PosixRule> PosixRule::parse(std::string_view whole) {
  Reader text{whole};
  PosixRule rule;
  if (!text.name()) return std::nullopt;
  const auto standard = text.time(24);
  if (!standard) return std::nullopt;
  rule.standard = -*standard;  // POSIX counts to the west
  if (text.done()) return rule;

  rule.has_summer = true;
  rule.summer = rule.standard + hours{1};
  if (!text.name()) return std::nullopt;
  if (!text.take(',')) {
    const auto summer = text.time(24);
    if (!summer || !text.take(',')) return std::nullopt;
    rule.summer = -*summer;
  }
  const auto begin = take_day(text);
  if (!begin || !text.take(',')) return std::nullopt;
  const auto end = take_day(text);
  if (!end || !text.done()) return std::nullopt;
  rule.summer_begin = *begin;
  rule.summer_end = *end;
  return rule;
}

// A TZif file has its data twice: 32 bits, which are skipped, then 64 bits, then the rule for later
// years as text in a footer. The counts of the second header are checked against the file's size.
Result<Zone> Zone::parse(std::string_view file) {
  Bytes bytes{file};
  auto header = take_header(bytes);
  if (!header) return bad_zone_file("something else");
  if (header->version < '2') return bad_zone_file("version 1, which ends in 2037");
  bytes.take(header->body_size(4));  // the same in 32 bits
  header = take_header(bytes);
  if (!header || !bytes.has(header->body_size(8))) return bad_zone_file("one that was cut off");
  if (header->leaps != 0) return bad_zone_file("one that counts leap seconds, as below right/");

  Bytes times{bytes.take(header->changes * 8)};
  const std::string_view type_of = bytes.take(header->changes);
  std::vector<seconds> offsets;
  for (std::uint64_t i = 0; i < header->types; ++i) {
    offsets.emplace_back(bytes.number(4));
    bytes.take(2);  // whether it is summer time, and its abbreviation
    if (abs(offsets.back()) > kMostOffset) return bad_zone_file("an offset of more than 26 hours");
  }
  if (offsets.empty()) return bad_zone_file("one without offsets");
  bytes.take(header->letters + header->standard_flags + header->utc_flags);

  Zone zone;
  zone.changes_.front().offset = offsets.front();
  for (const char type : type_of) {
    const Tick at{seconds{times.number(8)}};
    const auto index = static_cast<unsigned char>(type);
    if (index >= offsets.size()) return bad_zone_file("a change to an offset that is not there");
    if (at < kFirstTick) {  // "the Big Bang" in older files
      zone.changes_.front().offset = offsets[index];
    } else if (at > zone.changes_.back().at) {
      zone.changes_.push_back({at, offsets[index]});
    } else {
      return bad_zone_file("changes that are not in order");
    }
  }

  std::string_view footer = bytes.rest();
  if (footer.size() < 2 || footer.front() != '\n' ||
      footer.find('\n', 1) == std::string_view::npos) {
    return bad_zone_file("one without a footer");
  }
  footer = footer.substr(1, footer.find('\n', 1) - 1);
  if (footer.empty()) return zone;
  const auto rule = PosixRule::parse(footer);
  if (!rule) return bad_zone_file("the rule \"" + excerpt(footer) + '"');
  zone.rule_ = *rule;
  return zone;
}

// The changes of the file up to its last one, the rule after that.
Zone::Period Zone::period_at(Tick at) const {
  const auto after = std::upper_bound(changes_.begin() + 1, changes_.end(), at,
                                      [](Tick t, const Change& change) { return t < change.at; });
  const Change& change = after[-1];
  if (after != changes_.end()) return {change.at, after->at, change.offset};
  if (!rule_) return {change.at, Tick::max(), change.offset};
  return period_by_rule(at, change);
}

Zone::Period Zone::period_by_rule(Tick at, const Change& last) const {
  Period period{last.at, Tick::max(), last.offset};
  if (!rule_->has_summer) {
    period.offset = rule_->standard;
    return period;
  }
  // A local year begins up to a day off UTC's, so look at the years before and after too.
  const year now = year_month_day{floor<days>(at)}.year();
  std::array<Change, 6> changes{};
  std::size_t count = 0;
  for (year y = now - years{1}; y <= now + years{1}; ++y) {
    changes[count++] = {Tick{rule_->summer_begin.in(y).time_since_epoch() - rule_->standard},
                        rule_->summer};
    changes[count++] = {Tick{rule_->summer_end.in(y).time_since_epoch() - rule_->summer},
                        rule_->standard};
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  for (const Change& change : changes) {
    if (change.at <= last.at) continue;
    if (change.at > at) {
      period.end = change.at;
      break;
    }
    period.begin = change.at;
    period.offset = change.offset;
  }
  return period;
}

Result<std::shared_ptr<const Zone>> Zones::find(std::string_view name) {
  if (name.empty()) name = "UTC";
  if (const auto known = zones_.find(name); known != zones_.end()) return known->second;
  Zone zone;
  if (name != "UTC") {
    const auto unknown = [&](const std::string& rest) {
      return fail(ErrorCode::kInvalid, "expected a time zone such as \"Europe/Rome\", got \"" +
                                           excerpt(name) + '"' + rest);
    };
    // No name leads out of the folder: "." is not allowed.
    const bool safe = is_word(name, "_+-/") && !name.starts_with('/');
    if (!safe) return unknown("");
    if (name == "localtime") return unknown("; name the zone, since hosts may differ in theirs");
    const auto file = read_small_file("time zone", folder_ + '/' + std::string{name}, 1U << 20U);
    if (!file) return unknown(advice(name));
    auto read = Zone::parse(*file);
    if (!read) return unknown(": " + read.error().message);
    zone = *std::move(read);
  }
  auto found = std::make_shared<const Zone>(std::move(zone));
  zones_.emplace(name, found);
  return found;
}

// The way out of an unknown name.
std::string Zones::advice(std::string_view name) const {
  const auto list = read_small_file("time zones", folder_ + "/tzdata.zi");
  if (!list) return "; is the package tzdata installed?";
  std::vector<std::string_view> names;
  std::string_view text = *list;
  // "Z Europe/Rome 0:49:56 - LMT ...", "L Europe/Rome Europe/San_Marino"
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.find(' ', 2);
    if (line.starts_with("Z ")) names.push_back(line.substr(2, space - 2));
    if (line.starts_with("L ") && space != std::string_view::npos)
      names.push_back(line.substr(space + 1));
  }
  const std::string meant = nearest(name, names);
  return meant.empty() ? "; tzdata has no such zone, see timedatectl list-timezones"
                       : "; did you mean \"" + meant + "\"?";
}

}  // namespace lictor::schedule
