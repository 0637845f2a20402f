#include "client/locks.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "base/try.h"
#include "core/partition.h"
#include "wire/fleet.h"
#include "wire/json_text.h"
#include "wire/record.h"

namespace lictor::client {

using namespace std::chrono_literals;

// Without the right to read the number the queue is taken for one that has none.
Result<std::uint32_t> read_partition_count(Store& store, const wire::Layout& layout) {
  if (layout.partitions_key.empty()) return 1;
  const auto entry = store.get(layout.partitions_key);
  if (!entry && entry.error().code == ErrorCode::kPermissionDenied) return 1;
  if (!entry) return tl::unexpected(entry.error());
  if (!*entry) return 1;
  auto count = wire::read_count((*entry)->value);
  if (count) return *count;
  return fail(ErrorCode::kInvalid, layout.partitions_key + ": " + count.error().message +
                                       "; write the number that the queue had");
}

Locks::Locks(std::vector<std::optional<wire::KvEntry>> entries, bool hidden)
    : entries_(std::move(entries)) {
  leaders_.reserve(entries_.size());
  for (const auto& entry : entries_) {
    leaders_.push_back(client::leader_of(entry));
    if (!entry && hidden) leaders_.back().known = false;
  }
}

Locks Locks::unknown() { return Locks{{std::nullopt}, true}; }

std::uint32_t Locks::partition_of(const TaskInfo& task) const {
  if (count() == 1) return 0;
  if (!task.serial_key.empty()) return core::partition_of(task.serial_key, count());
  if (!wire::check_record(task.record)) return core::partition_of(task.key, count());
  const auto record = wire::parse_json(task.record, wire::kAnyDepth);
  const std::string id = record ? text_member(*record, "taskId") : std::string{};
  return core::partition_of(id.empty() ? task.id : id, count());
}

Result<Locks> read_locks(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const std::uint32_t count, read_partition_count(store, layout));
  if (count == 1) {
    std::vector<std::optional<wire::KvEntry>> entries(1);
    LICTOR_TRY(entries.front(), store.get(layout.leader_key));
    return Locks{std::move(entries)};
  }
  const std::string first = layout.lock_key({count, 0});
  const std::string prefix = first.substr(0, first.rfind('/') + 1);
  LICTOR_TRY(auto listed, store.list(prefix));
  std::vector<std::optional<wire::KvEntry>> entries(count);
  for (wire::KvEntry& entry : listed.entries) {
    const auto number = to_number<std::uint32_t>(std::string_view{entry.key}.substr(prefix.size()));
    // Not "007" either.
    if (!number || *number >= count || entry.key != layout.lock_key({count, *number})) continue;
    entries[*number] = std::move(entry);
  }
  return Locks{std::move(entries), listed.hidden};
}

void wait_for_change(Store& store, const wire::Layout& layout, const Locks& locks,
                     std::uint32_t partition, Duration wait) {
  const auto& entry = locks.entry(partition);
  const Instant before = boot_now();
  if (entry) {
    const auto watched =
        store.watch(layout.lock_key({locks.count(), partition}), entry->modify_index,
                    std::chrono::ceil<std::chrono::milliseconds>(wait));
    if (watched && watched->entry && watched->entry->modify_index != entry->modify_index) return;
  }
  // Consul may answer at once all the same: without the key, after a restore, after an error.
  const Duration left = wait - (boot_now() - before);
  std::this_thread::sleep_for(std::clamp<Duration>(left, 0s, 500ms));
}

Locks locks_if_known(Result<Locks> read) { return read ? *std::move(read) : Locks::unknown(); }

TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry, const Locks& locks,
                   WallTime now) {
  return view_led_task(
      layout, std::move(entry),
      [&](const TaskInfo& task) -> const Leader& { return locks.leader_of(task); }, now);
}

}  // namespace lictor::client
