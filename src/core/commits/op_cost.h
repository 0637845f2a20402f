#pragma once

// The room that a write takes in a transaction, and its keys. The core packs transactions by this
// and decides by it which records can be served at all. How a request is worded is decided
// elsewhere (wire/transaction_plan).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/effect.h"

namespace lictor::core {

struct Cost {
  std::size_t operations = 0;
  std::size_t bytes = 0;

  Cost& operator+=(const Cost& more) {
    operations += more.operations;
    bytes += more.bytes;
    return *this;
  }
  Cost& operator-=(const Cost& less) {
    operations -= less.operations;
    bytes -= less.bytes;
    return *this;
  }
};

/// The error of an attempt that hands over more than a transaction takes, one line.
[[nodiscard]] inline std::string writes_do_not_fit(std::size_t writes, const Cost& most) {
  return "its " + std::to_string(writes) +
         " writes do not fit into the transaction that finishes it, which takes " +
         std::to_string(most.operations) + " operations, some of them lictor's own, and " +
         std::to_string(most.bytes) + " bytes in base64";
}

/// Pure. A cost is never less than the room that the request takes in the end.
class CostModel {
 public:
  virtual ~CostModel() = default;

  /// The cost of a transaction's frame, and of its fences if it writes for `partitions` of `count`
  /// partitions.
  [[nodiscard]] virtual Cost fence(std::uint32_t count, std::size_t partitions) const = 0;
  [[nodiscard]] virtual Cost cost(const Op& op) const = 0;
  /// The keys that the operation writes or deletes, as hashes.
  [[nodiscard]] virtual std::vector<std::uint64_t> written_keys(const Op& op) const = 0;
  /// The longest record of the task at `key`, in bytes, for which a transaction of
  /// `transaction_bytes` holds each write of its life: claim, retry, dead letter without output.
  [[nodiscard]] virtual std::size_t record_limit(std::string_view key,
                                                 std::size_t transaction_bytes) const = 0;
  /// The part of that limit that an unreadable record takes: its dead letter holds it in another
  /// form.
  [[nodiscard]] virtual std::size_t unreadable_size(std::string_view record) const = 0;
};

}  // namespace lictor::core
