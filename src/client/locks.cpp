#include "client/locks.h"

#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/try.h"
#include "core/partition.h"

namespace lictor::client {
namespace {

// As the daemons read it: a shell's line end may follow the number.
std::optional<std::uint32_t> count_in(std::string_view value) {
  while (value.ends_with('\n') || value.ends_with(' ')) value.remove_suffix(1);
  const auto count = to_number<std::uint32_t>(value);
  return count && *count >= 1 && *count <= core::kMostPartitions ? count : std::nullopt;
}

}  // namespace

Result<std::uint32_t> read_partition_count(Store& store, const wire::Layout& layout) {
  if (layout.partitions_key.empty()) return 1;
  LICTOR_TRY(const auto entry, store.get(layout.partitions_key));
  if (!entry) return 1;
  if (const auto count = count_in(entry->value)) return *count;
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: expected the number of partitions, from 1 to {}, got \"{}\"; write "
                          "the number that the queue had",
                          layout.partitions_key, core::kMostPartitions, excerpt(entry->value)));
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
  return core::partition_of(task.serial_key, task.id, count());
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

Locks locks_if_known(Result<Locks> read) { return read ? *std::move(read) : Locks::unknown(); }

TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry, const Locks& locks,
                   WallTime now) {
  return view_led_task(
      layout, std::move(entry),
      [&](const TaskInfo& task) -> const Leader& { return locks.leader_of(task); }, now);
}

}  // namespace lictor::client
