// Schedules and cron expressions as operators write them.

#include <string>

#include "fuzz.h"
#include "schedule/cron.h"
#include "schedule/ticks.h"
#include "wire/record.h"
#include "wire/schedule_record.h"

namespace lictor::fuzz {
namespace {

using namespace schedule;
using namespace std::chrono_literals;

const Tick kNow = std::chrono::sys_days{std::chrono::year{2026} / 11 / 24} + 9h;

void check_cron(std::string_view text) {
  const auto cron = Cron::parse(text);
  if (!cron) {
    FUZZ_REQUIRE(cron.error().message.find("expected") != std::string::npos);
    return;
  }
  const LocalTime now{kNow.time_since_epoch()};
  const auto next = cron->next(now, now + std::chrono::years{400});
  FUZZ_REQUIRE(next.has_value());
  FUZZ_REQUIRE(!cron->next(now, *next));
  FUZZ_REQUIRE(cron->next(*next, *next + 1s) == next);
}

void check_record(std::string_view text) {
  static Zones zones;
  const auto read = wire::read_schedule("nightly", text, zones);
  if (!read) {
    FUZZ_REQUIRE(read.error().message.find("expected") != std::string::npos);
    return;
  }
  FUZZ_REQUIRE(wire::check_record(wire::tick_task("nightly", *read, kNow)).has_value());
  const std::string rewritten = wire::with_last_tick(text, kNow, {});
  FUZZ_REQUIRE(wire::with_last_tick(rewritten, kNow, {}) == rewritten);
  const auto again = wire::read_schedule("nightly", rewritten, zones);
  FUZZ_REQUIRE(again && again->last_tick == kNow && again->task == read->task);
}

}  // namespace
}  // namespace lictor::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = lictor::fuzz::text_of(data, size);
  lictor::fuzz::check_cron(text);
  lictor::fuzz::check_record(text);
  return 0;
}
