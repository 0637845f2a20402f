#include "schedule/zone.h"

#include <algorithm>
#include <string>

#include <cctz/zone_info_source.h>
#include <fmt/format.h>

#include "base/read_file.h"
#include "base/siphash.h"
#include "base/text.h"

namespace lictor::schedule {
namespace {

// The time that a wall clock shows, as the instant at which a clock of UTC shows the same.
Tick as_utc(const cctz::civil_second& shown) {
  return Tick{std::chrono::seconds{shown - cctz::civil_second{}}};
}

// CCTZ keeps what it has read for ever, by name. So a zone's name begins with a hash of its file:
// "81f3a2c55d90b7e4:/usr/share/zoneinfo/Europe/Rome".
std::string versioned_name(const std::string& path, std::string_view file) {
  return fmt::format("{:x}:{}", siphash<2, 4>(SipKey{}, file), path);
}

std::unique_ptr<cctz::ZoneInfoSource> open_versioned(
    const std::string& name,
    const std::function<std::unique_ptr<cctz::ZoneInfoSource>(const std::string&)>& open) {
  return open("file" + name.substr(name.find(':')));
}

}  // namespace

Zone::Period Zone::period_at(Tick at) const {
  const std::chrono::seconds offset{zone_.lookup(at).offset};
  Period period{Tick::min(), Tick::max(), offset};
  cctz::time_zone::civil_transition change;
  if (zone_.prev_transition(at + std::chrono::seconds{1}, &change)) {
    period.begin = as_utc(change.to) - offset;
  }
  if (zone_.next_transition(at, &change)) period.end = as_utc(change.from) - offset;
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
    const bool safe = is_word(name, "_+-/") && !name.starts_with('/') &&
                      name.find("//") == std::string_view::npos;
    if (!safe) return unknown("");
    if (name == "localtime" || name == "posixrules") {
      return unknown("; name the zone, since hosts may differ in theirs");
    }
    const std::string path = folder_ + '/' + std::string{name};
    const auto file = read_small_file("time zone", path, 1U << 20U);
    cctz::time_zone read;
    if (!file || !cctz::load_time_zone(versioned_name(path, *file), &read)) {
      return unknown(advice(name));
    }
    zone = Zone{read};
  }
  auto found = std::make_shared<const Zone>(zone);
  zones_.emplace(name, found);
  return found;
}

// Suggests what to do about an unknown name.
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

// CCTZ calls this to open a zone.
cctz_extension::ZoneInfoSourceFactory cctz_extension::zone_info_source_factory =
    lictor::schedule::open_versioned;
