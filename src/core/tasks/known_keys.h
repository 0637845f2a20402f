#pragma once

// The entries of all keys that the core knows, in the order of their bytes. Consul lists names in
// the same order, so a listing is compared with them in one walk over both.

#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "core/tasks/task_entry.h"

namespace lictor::core {

using KnownKeys = std::set<std::unique_ptr<TaskEntry>, ByKey>;

/// The entry of the key; null: it is not known.
[[nodiscard]] inline TaskEntry* find(const KnownKeys& keys, std::string_view key) {
  const auto it = keys.find(key);
  return it == keys.end() ? nullptr : it->get();
}

/// Compares `names`, which are in order, with the known keys. Calls `visit(TaskEntry&, listed)` for
/// each known key, in order, and returns the names that are not known.
template <class Visit>
[[nodiscard]] std::vector<std::string_view> compare(const std::vector<std::string_view>& names,
                                                    const KnownKeys& keys, Visit visit) {
  std::vector<std::string_view> unknown;
  auto name = names.begin();
  for (const auto& known : keys) {
    bool listed = false;
    for (; name != names.end() && *name <= known->key; ++name) {
      listed = *name == known->key;
      if (!listed) unknown.push_back(*name);
    }
    visit(*known, listed);
  }
  unknown.insert(unknown.end(), name, names.end());
  return unknown;
}

/// The names that are not known.
[[nodiscard]] inline std::vector<std::string_view> unknown_of(
    const std::vector<std::string_view>& names, const KnownKeys& keys) {
  return compare(names, keys, [](const TaskEntry&, bool) {});
}

}  // namespace lictor::core
