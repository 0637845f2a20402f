#include "core/event.h"

#include <algorithm>

namespace lictor::core {

void readings_first(std::vector<Event>& events) {
  const auto is_reading = [](const Event& event) {
    return std::holds_alternative<WallClockRead>(event);
  };
  if (std::none_of(events.begin(), events.end(), is_reading)) return;
  std::stable_partition(events.begin(), events.end(), is_reading);
}

}  // namespace lictor::core
