#include "schedule/zone.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/read_file.h"
#include "base/text.h"
#include "base/try.h"
#include "schedule/posix_rule.h"

namespace lictor::schedule {
namespace {

using namespace std::chrono;

constexpr seconds kMostOffset = hours{26};  // RFC 8536, 3.2: from -25 to 26 hours

tl::unexpected<Error> refused(const std::string& what) {
  return fail(ErrorCode::kInvalid, "expected a TZif file (RFC 8536), got " + what);
}

// Reads big-endian numbers. What is beyond the end reads as 0, so check has() first.
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

}  // namespace

Result<Zone> Zone::parse(std::string_view file) {
  Bytes bytes{file};
  auto header = take_header(bytes);
  if (!header) return refused("something else");
  if (header->version < '2') return refused("version 1, which ends in 2037");
  bytes.take(header->body_size(4));  // the same in 32 bits
  header = take_header(bytes);
  if (!header || !bytes.has(header->body_size(8))) return refused("one that was cut off");
  if (header->leaps != 0) return refused("one that counts leap seconds, as below right/");

  Bytes times{bytes.take(header->changes * 8)};
  const std::string_view type_of = bytes.take(header->changes);
  std::vector<seconds> offsets;
  for (std::uint64_t i = 0; i < header->types; ++i) {
    offsets.emplace_back(bytes.number(4));
    bytes.take(2);  // whether it is summer time, and its abbreviation
    if (abs(offsets.back()) > kMostOffset) return refused("an offset of more than 26 hours");
  }
  if (offsets.empty()) return refused("one without offsets");
  bytes.take(header->letters + header->standard_flags + header->utc_flags);

  Zone zone;
  zone.changes_.front().offset = offsets.front();
  for (const char type : type_of) {
    const Tick at{seconds{times.number(8)}};
    const auto index = static_cast<unsigned char>(type);
    if (index >= offsets.size()) return refused("a change to an offset that is not there");
    if (at < kFirstTick) {  // "the Big Bang" in older files
      zone.changes_.front().offset = offsets[index];
    } else if (at > zone.changes_.back().at) {
      zone.changes_.push_back({at, offsets[index]});
    } else {
      return refused("changes that are not in order");
    }
  }

  std::string_view footer = bytes.rest();
  if (footer.size() < 2 || footer.front() != '\n' ||
      footer.find('\n', 1) == std::string_view::npos) {
    return refused("one without a footer");
  }
  footer = footer.substr(1, footer.find('\n', 1) - 1);
  if (footer.empty()) return zone;
  const auto rule = PosixRule::parse(footer);
  if (!rule) return refused("the rule \"" + excerpt(footer) + '"');
  zone.rule_ = *rule;
  return zone;
}

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
  // The changes of the year before and after, since local years differ from ours.
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
    // A name leads nowhere but below the folder.
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

// What to do about an unknown name.
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
