#include "wire/schedule_cache.h"

#include <utility>

#include "wire/schedule_record.h"

namespace lictor::wire {

std::vector<core::SchedulesListed::Entry> ScheduleCache::read(const Layout& layout,
                                                              std::vector<KvEntry> listing) {
  const std::lock_guard lock{mutex_};
  std::map<std::string, core::SchedulesListed::Entry> read;
  std::vector<core::SchedulesListed::Entry> entries;
  for (KvEntry& kv : listing) {
    if (!kv.key.starts_with(layout.schedules_prefix) || kv.key.ends_with('/')) continue;
    core::SchedulesListed::Entry entry;
    if (const auto known = known_.find(kv.key);
        known != known_.end() && known->second.modify_index == kv.modify_index) {
      entry = std::move(known->second);
    } else {
      entry.key = kv.key;
      entry.name = kv.key.substr(layout.schedules_prefix.size());
      entry.tasks = layout.task_key(entry.name + '@');
      entry.create_index = kv.create_index;
      entry.modify_index = kv.modify_index;
      entry.flags = kv.flags;
      entry.record = std::make_shared<const std::string>(std::move(kv.value));
      if (auto definition = read_schedule(entry.name, *entry.record, zones_)) {
        if (!definition->last_task.empty()) {
          entry.last_task_key = layout.task_key(definition->last_task);
        }
        entry.definition = std::make_shared<const schedule::Definition>(*std::move(definition));
      } else {
        entry.error = std::move(definition.error().message);
      }
    }
    entries.push_back(entry);
    read.insert_or_assign(std::move(kv.key), std::move(entry));
  }
  known_ = std::move(read);
  return entries;
}

void ScheduleCache::forget() {
  const std::lock_guard lock{mutex_};
  zones_.forget();
  known_.clear();
}

}  // namespace lictor::wire
