#include "client/locks.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/try.h"
#include "client/task_info.h"
#include "wire/fleet.h"
#include "wire/record.h"

namespace lictor::client {

using namespace std::chrono_literals;

// Without the right to read the number, the queue counts as one with one partition.
Result<std::uint32_t> read_partition_count(Store& store, const wire::Layout& layout) {
  if (layout.partitions_key.empty()) return 1;
  const auto entry = store.get(layout.partitions_key);
  if (!entry && entry.error().code == ErrorCode::kPermissionDenied) return 1;
  if (!entry) return tl::unexpected(entry.error());
  if (!*entry) return 1;
  auto count = wire::read_count((*entry)->value);
  if (count) return *count;
  return fail(
      ErrorCode::kInvalid,
      layout.partitions_key + ": " + count.error().message +
          "; write the number that the queue had, or delete the key if it had one partition");
}

std::string LockView::text(const char* field) const { return text_of(value, field); }

std::string LockView::name() const {
  if (session.empty()) return {};
  const std::string node = text("node");
  return node.empty() ? "session " + session : node;
}

LockView lock_of(const std::optional<wire::KvEntry>& entry, core::Partition partition) {
  LockView lock{partition};
  if (!entry) return lock;
  lock.session = entry->session;
  lock.index = entry->modify_index;
  auto value = parse_json(entry->value);
  if (value && value->is_object()) lock.value = *std::move(value);
  return lock;
}

Locks::Locks(const std::vector<std::optional<wire::KvEntry>>& entries, bool hidden) {
  const auto count = static_cast<std::uint32_t>(entries.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    locks_.push_back(lock_of(entries[i], {count, i}));
    locks_.back().known = entries[i] || !hidden;
  }
}

Locks Locks::unknown() { return Locks{{std::nullopt}, true}; }

std::uint32_t Locks::partition_of(const TaskInfo& task) const {
  if (count() == 1) return 0;
  if (!task.serial_key.empty()) return core::partition_of(task.serial_key, count());
  if (!wire::check_record(task.record)) return core::partition_of(task.key, count());
  const auto record = parse_json(task.record, kAnyDepth);
  const std::string id = record ? text_member(*record, "taskId") : std::string{};
  return core::partition_of(id.empty() ? task.id : id, count());
}

Result<Locks> read_locks(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const std::uint32_t count, read_partition_count(store, layout));
  std::vector<std::optional<wire::KvEntry>> entries(count);
  if (count == 1) {
    LICTOR_TRY(entries.front(), store.get(layout.leader_key));
    return Locks{entries};
  }
  const std::string first = layout.lock_key({count, 0});
  const std::string prefix = first.substr(0, first.rfind('/') + 1);
  LICTOR_TRY(auto listed, store.list(prefix));
  for (wire::KvEntry& entry : listed.entries) {
    const auto number = to_number<std::uint32_t>(std::string_view{entry.key}.substr(prefix.size()));
    // Leaves out "007", too.
    if (!number || *number >= count || entry.key != layout.lock_key({count, *number})) continue;
    entries[*number] = std::move(entry);
  }
  return Locks{entries, listed.hidden};
}

// Watches one lock. A caller that waits for several reads all again after kRereadLocks.
void wait_for_change(Store& store, const wire::Layout& layout, const LockView& lock,
                     Duration wait) {
  const Instant before = boot_now();
  if (lock.index != 0) {
    const auto watched = store.watch(layout.lock_key(lock.partition), lock.index,
                                     std::chrono::ceil<std::chrono::milliseconds>(wait));
    if (watched && watched->entry && watched->entry->modify_index != lock.index) return;
  }
  // Consul may answer at once all the same: without the key, after a restore, after an error.
  const Duration left = wait - (boot_now() - before);
  std::this_thread::sleep_for(std::clamp<Duration>(left, 0s, 500ms));
}

Locks locks_if_known(Result<Locks> read) { return read ? *std::move(read) : Locks::unknown(); }

}  // namespace lictor::client
