#pragma once

// The locks of a queue, and whose partition a task is in.
//
//   partitions   absent, 1 --> leader
//                P         --> leader/<P>/0 ... leader/<P>/<P - 1>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/store.h"
#include "client/task_info.h"
#include "lictor/client.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::client {

/// How many partitions the queue has. Errors: kInvalid, its key holds no such number; those of
/// Store::get().
[[nodiscard]] Result<std::uint32_t> read_partition_count(Store& store, const wire::Layout& layout);

/// The locks of all partitions, as they were read.
class Locks {
 public:
  /// One for each partition; nothing: there is no such key. `hidden`: such keys may be there, but may
  /// not be read.
  explicit Locks(std::vector<std::optional<wire::KvEntry>> entries, bool hidden = false);
  /// Those that cannot be read, so that claimed tasks count as running.
  [[nodiscard]] static Locks unknown();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(leaders_.size()); }
  [[nodiscard]] std::uint32_t partition_of(const TaskInfo& task) const;
  [[nodiscard]] const Leader& leader(std::uint32_t partition) const { return leaders_[partition]; }
  [[nodiscard]] const Leader& leader_of(const TaskInfo& task) const {
    return leaders_[partition_of(task)];
  }
  [[nodiscard]] const std::optional<wire::KvEntry>& entry(std::uint32_t partition) const {
    return entries_[partition];
  }

 private:
  std::vector<std::optional<wire::KvEntry>> entries_;
  std::vector<Leader> leaders_;
};

/// Errors: those of read_partition_count() and Store::list().
[[nodiscard]] Result<Locks> read_locks(Store& store, const wire::Layout& layout);
/// Locks::unknown() after an error.
[[nodiscard]] Locks locks_if_known(Result<Locks> read);

/// By the leader of the task's partition.
[[nodiscard]] TaskInfo view_task(const wire::Layout& layout, wire::KvEntry entry,
                                 const Locks& locks, WallTime now);

}  // namespace lictor::client
