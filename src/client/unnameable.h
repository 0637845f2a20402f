#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/queue.h"
#include "client/store.h"
#include "lictor/client.h"

namespace lictor::client {

/// The keys of a listing that are not UTF-8. In Consul's JSON each of their bytes that is not reads
/// U+FFFD, which names another key: mostly none (CONSUL-FACTS.md 9.2). Nobody who speaks JSON can
/// claim, run or delete them.
class UnnameableKeys {
 public:
  /// Looks up those of `listed` that may be such; where that fails, they pass for ordinary ones.
  UnnameableKeys(Store& store, const std::vector<wire::KvEntry>& listed);

  /// Makes `task`, which was listed, one that is kUnnameable, if it is.
  void mark(TaskInfo& task) const;

 private:
  std::set<std::pair<std::string, std::uint64_t>> keys_;  ///< with their CreateIndex
};

/// What is to be said of a task that was not found: empty, unless `id` is, or stands for, bytes
/// that are not UTF-8.
[[nodiscard]] std::string unnameable_hint(const wire::Layout& layout, const std::string& id);

}  // namespace lictor::client
