#pragma once

// Every bound on lictor's requests to Consul (operating.md), with its reason. The code that makes a
// request asserts its bound here; no other place names the number.

#include <cstddef>

namespace lictor::limits {

// ---- Transactions ----

/// Operations of a transaction, reads and checks counted too (consul.md 3.1). A Consul before
/// 1.14 takes 64, one since then 128, and no setting changes that. Its refusal names the number: we
/// send up to kMostOperations until an agent refuses that, and up to the named number from then on.
inline constexpr std::size_t kMostOperations = 128;
/// Every Consul takes this number. A refusal that names no number also means this one.
inline constexpr std::size_t kLeastOperations = 64;

/// Bytes of a transaction's body: Consul's default of txn_max_req_len (consul.md 3.1). More
/// is refused with 413 whatever the number of operations.
inline constexpr std::size_t kTransactionBytes = 524'288;

/// Bytes that a producer's or an operator's transaction gathers, estimated without building it:
/// less, since the frame of an operation is only guessed.
inline constexpr std::size_t kBatchBytes = 400'000;

/// Whether a record fits into every transaction of its life by its length alone. A transaction
/// holds the key four times, with six bytes for each of its own at most, and lictor adds less than
/// 8 KiB. False: the exact limit decides.
constexpr bool is_short_record(std::size_t record_bytes, std::size_t key_bytes,
                               std::size_t transaction_bytes = kTransactionBytes) {
  return 64 * (record_bytes + key_bytes) <= transaction_bytes;
}

static_assert(kBatchBytes < kTransactionBytes);
static_assert(kLeastOperations < kMostOperations);

}  // namespace lictor::limits
