// Answers questions about schedules, for comparisons with other programs (croniter_test.py). Reads
// a question a line, with tabs between its parts, and prints an answer a line: seconds since the
// epoch, "none", or "error: " and the message.
//
//   next ZONE AFTER EXPRESSION   the first tick after AFTER (seconds since the epoch)
//   offset ZONE AT               how many seconds the wall clock is ahead of UTC

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "schedule/ticks.h"

namespace {

using namespace lictor;
using namespace lictor::schedule;

std::string_view take_part(std::string_view& text) {
  const std::size_t end = text.find('\t');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

Result<std::string> answer(Zones& zones, std::string_view line) {
  const std::string_view question = take_part(line);
  LICTOR_TRY(const auto zone, zones.find(take_part(line)));
  const auto at = to_number<std::int64_t>(take_part(line));
  if (!at) return fail(ErrorCode::kInvalid, "expected seconds since the epoch");
  const Tick time{std::chrono::seconds{*at}};
  if (question == "offset") return std::to_string(zone->period_at(time).offset.count());
  if (question != "next") return fail(ErrorCode::kInvalid, "expected next or offset");
  LICTOR_TRY(auto cron, Cron::parse(line));
  LICTOR_TRY(const auto schedule, Schedule::make({cron, zone, {}, {}}));
  const auto next = schedule.next_after(time);
  return next ? std::to_string(next->time_since_epoch().count()) : "none";
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  Zones zones;
  for (std::string line; std::getline(std::cin, line);) {
    const auto said = answer(zones, line);
    std::cout << (said ? *said : "error: " + said.error().message) << '\n';
  }
}
