#pragma once

// The locks of a queue, and the partition of a task.
//
//   partitions   absent, 1 --> leader
//                P         --> leader/<P>/0 ... leader/<P>/<P - 1>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/store.h"
#include "core/partition.h"
#include "lictor/client.h"
#include "lictor/result.h"
#include "wire/layout.h"

namespace lictor::client {

/// The number of the queue's partitions. Errors: kInvalid, its key holds no such number; those of
/// Store::get().
[[nodiscard]] Result<std::uint32_t> read_partition_count(Store& store, const wire::Layout& layout);

/// The leader key, or the lock of a partition. Another version or program may have written its
/// value.
struct LockView {
  core::Partition partition{};
  std::string session{};                            ///< empty: nobody holds it
  nlohmann::json value = nlohmann::json::object();  ///< an object
  std::uint64_t index = 0;                          ///< ModifyIndex; 0: there is no such key
  bool known = true;  ///< false: it may not be read, so claimed tasks count as running

  /// A field of the value; empty: there is none.
  [[nodiscard]] std::string text(const char* field) const;
  /// The leader's name; empty: nobody leads.
  [[nodiscard]] std::string name() const;
};
[[nodiscard]] LockView lock_of(const std::optional<wire::KvEntry>& entry,
                               core::Partition partition = {});

/// The locks of all partitions, as they were read.
class Locks {
 public:
  /// `entries`: one for each partition, std::nullopt without a key. `hidden`: there may be keys
  /// that the token may not read.
  explicit Locks(const std::vector<std::optional<wire::KvEntry>>& entries, bool hidden = false);
  /// Locks that cannot be read, so that claimed tasks count as running.
  [[nodiscard]] static Locks unknown();

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(locks_.size()); }
  [[nodiscard]] const LockView& operator[](std::uint32_t partition) const {
    return locks_[partition];
  }
  /// Iterates in the order of the partitions.
  [[nodiscard]] auto begin() const { return locks_.begin(); }
  [[nodiscard]] auto end() const { return locks_.end(); }
  [[nodiscard]] const LockView& of(const TaskInfo& task) const {
    return locks_[partition_of(task)];
  }
  /// The partition as the daemons compute it: by the serialKey, else by the record's taskId, else
  /// by the key's part after the prefix; for an unreadable record by the whole key.
  [[nodiscard]] std::uint32_t partition_of(const TaskInfo& task) const;

 private:
  std::vector<LockView> locks_;
};

/// Errors: those of read_partition_count() and Store::list().
[[nodiscard]] Result<Locks> read_locks(Store& store, const wire::Layout& layout);
/// While one lock is watched, all are read again this often.
inline constexpr Duration kRereadLocks = std::chrono::seconds{2};
/// Waits until the lock has changed, for `wait` at most; may end early.
void wait_for_change(Store& store, const wire::Layout& layout, const LockView& lock, Duration wait);
/// Locks::unknown() after an error.
[[nodiscard]] Locks locks_if_known(Result<Locks> read);

}  // namespace lictor::client
