#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/id.h"
#include "core/event.h"
#include "core/options.h"
#include "core/partition.h"
#include "core/task.h"
#include "core/tasks/task_state.h"

namespace lictor::core {

enum class StopReason { kNone, kWithdrawn, kTimeout, kDrain, kLease };

/// Our data of a task, from its claim to its end.
struct Attempt {
  AttemptId id;
  TypePolicy policy;        // as of the claim
  std::uint64_t token = 0;  // the fencing token: the ModifyIndex of the claim
  StopReason stop = StopReason::kNone;
  Instant claimed_at{};
  Instant held_since{};
  Instant started_at{};
  Instant ended_at{};                   // of a job that succeeded
  Instant timeout_at = Instant::max();  // after a stop: when the job should have ended
  bool last_chance = false;             // its next lost owner makes it a dead letter
  bool returns = false;                 // keeps its place in order, until it is read or rewritten
  bool begun = false;                   // under an earlier claim
  bool recalled = false;                // to be given back instead of started
  std::optional<WallTime> early_until;  // claimed ahead, until this time
};

/// In Consul's JSON every byte of a key that is not UTF-8 reads U+FFFD, which names another key.
[[nodiscard]] inline bool is_unnameable(std::string_view key) {
  return key.find("\xef\xbf\xbd") != std::string_view::npos;
}

/// Everything that the core knows of one key. Only TaskTable::update() changes what its orders use.
struct TaskEntry {
  std::string key;
  std::uint64_t index = 0;  // ModifyIndex of the newest known version; 0: any is news
  TaskState state = TaskState::kUnread;
  Lack lack = Lack::kNothing;        // while has_lack(state)
  std::uint8_t partition = 0;        // once its record is read
  std::uint32_t tombstones = 0;      // entries in the table's list of deletions
  WallTime due = WallTime::min();    // not before this
  std::shared_ptr<const Task> task;  // while it waits or is ours
  std::unique_ptr<Attempt> attempt;  // while it is ours or a leftover
  struct Notes {
    std::shared_ptr<const BadRecord> bad;  // of an unreadable record
    std::string text;                      // why Consul refused its claim, or why it is too large
    std::set<std::string> not_started;  // nonces of claims of ours under which nothing was started
    /// While a write of ours is under way: the index of a listing or record that is newer than the
    /// version written over.
    std::uint64_t newer_index = 0;
  };
  std::unique_ptr<Notes> notes;  // null for most entries

  [[nodiscard]] bool lacks(Lack one) const { return has_lack(state) && lack == one; }
  [[nodiscard]] Notes& note() {
    if (!notes) notes = std::make_unique<Notes>();
    return *notes;
  }
  [[nodiscard]] std::uint64_t newer_index() const { return notes ? notes->newer_index : 0; }
  void remember_newer(std::uint64_t newer) { note().newer_index = std::max(newer_index(), newer); }
  /// Remembers a claim that was given up and may still land; after a hundred others that is not
  /// expected any more.
  void remember_not_started(const std::string& nonce) {
    constexpr std::size_t kMost = 100;
    auto& nonces = note().not_started;
    if (nonces.size() >= kMost) nonces.clear();
    nonces.insert(nonce);
  }
};

/// The order of their keys' bytes.
struct ByKey {
  using is_transparent = void;
  static std::string_view key_of(std::string_view key) { return key; }
  static std::string_view key_of(const TaskEntry* entry) { return entry->key; }
  static std::string_view key_of(const std::unique_ptr<TaskEntry>& entry) { return entry->key; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return key_of(a) < key_of(b);
  }
};
/// The order in which tasks start.
struct ByStart {
  bool operator()(const TaskEntry* a, const TaskEntry* b) const {
    return starts_before(*a->task, *b->task);
  }
};

static_assert(kMostPartitions == 256);   // TaskEntry::partition
static_assert(sizeof(TaskEntry) <= 88);  // a hundred thousand of them may wait for tomorrow

}  // namespace lictor::core
