#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// Whether `text` is a JSON pointer (RFC 6901), not to the whole document.
[[nodiscard]] bool is_json_pointer(std::string_view text);

/// Sets the state of listed tasks whose keys are not UTF-8 to kUnnameable. Consul's JSON shows
/// U+FFFD for each bad byte, which names another key (consul.md 9.2), so no JSON client can claim,
/// run or delete them. Looks up the suspects; if that fails, they count as ordinary keys.
void mark_unnameable(Store& store, std::vector<TaskInfo>& tasks);

/// Advice for a key `prefix` + `id` that was not found; empty, unless it may not be UTF-8.
[[nodiscard]] std::string unnameable_hint(const std::string& prefix, const std::string& id);

}  // namespace lictor::client
