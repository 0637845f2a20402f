#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "client/queue.h"
#include "client/store.h"
#include "lictor/client.h"
#include "lictor/time.h"

namespace lictor::client {

/// Makes unique ids whose text order is the order of creation, also within one millisecond:
/// `019aa2f4c31e-4f0b9d8e77a2c315`, milliseconds since the epoch and random bits.
class TaskIds {
 public:
  explicit TaskIds(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::string next(WallTime now);

 private:
  Random random_;
  std::uint64_t last_ms_ = 0;
  std::uint64_t last_bits_ = 0;
};

/// Why HTTP clients cannot reach the KV key `key`; empty: they can. Consul answers 301 to "//", "."
/// and ".." segments and a leading "/", and 400 to unprintable characters (consul.md 9.2).
[[nodiscard]] std::string key_fault(std::string_view key);

/// Why `id` cannot be the id of a new task or the name of a schedule; empty: it can.
[[nodiscard]] std::string id_fault(std::string_view id);

/// The keys of a listing that are not UTF-8. Consul's JSON shows U+FFFD for each bad byte, which
/// names another key (consul.md 9.2), so no JSON client can claim, run or delete them.
class UnnameableKeys {
 public:
  /// Looks up the suspects of `listed`, entries or TaskInfos. If that fails, they count as ordinary
  /// keys.
  template <class Listed>
  UnnameableKeys(Store& store, const std::vector<Listed>& listed) {
    for (const Listed& each : listed) add_if_suspect(each.key, each.create_index);
    keep_unnameable(store);
  }

  /// Sets the state of a listed task to kUnnameable if its key is one of them.
  void mark(TaskInfo& task) const;

 private:
  void add_if_suspect(const std::string& key, std::uint64_t create_index);
  void keep_unnameable(Store& store);

  std::set<std::pair<std::string, std::uint64_t>> keys_;  ///< with their CreateIndex
};

/// Advice for a key `prefix` + `id` that was not found; empty, unless it may not be UTF-8.
[[nodiscard]] std::string unnameable_hint(const std::string& prefix, const std::string& id);

}  // namespace lictor::client
