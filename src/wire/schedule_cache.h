#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/event.h"
#include "schedule/zone.h"
#include "wire/layout.h"
#include "wire/record.h"

namespace lictor::wire {

/// Reads listings of schedules; a version that was in the listing before is not read again.
/// Thread-safe.
class ScheduleCache {
 public:
  /// The entries of a listing as the core knows them, without folders.
  [[nodiscard]] std::vector<core::SchedulesListed::Entry> read(const Layout& layout,
                                                               std::vector<KvEntry> listing);
  /// Reads everything anew next time: tzdata may have been updated.
  void forget();

 private:
  std::mutex mutex_;
  schedule::Zones zones_;
  std::map<std::string, core::SchedulesListed::Entry> known_;  // by key
};

}  // namespace lictor::wire
