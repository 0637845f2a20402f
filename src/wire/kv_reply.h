#pragma once

// Consul's answers as entries, names and outcomes. Accepts any bytes.
//
// Speed matters here: a new leader reads a hundred thousand values, and compares as many names at
// each change. So simdjson parses them, long texts in place. Indexes are 64-bit numbers, which a
// double would round: two versions of a key would look alike.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "core/key_list.h"
#include "lictor/result.h"
#include "wire/record.h"

namespace lictor::wire {

/// The array of entries in the reply to a KV read, values decoded. 64-bit numbers are kept exact.
/// Move a long `body` in: it is parsed in place.
[[nodiscard]] Result<std::vector<KvEntry>> read_kv_entries(std::string body);

/// The names in the reply to a `?keys` read.
[[nodiscard]] Result<core::KeyList> read_key_names(std::string body);

/// A transaction's answer, 200 or 409. Results are not parallel to the request (consul.md
/// 3.2): match them by key.
struct TxnReply {
  struct OpError {
    std::size_t index = 0;
    std::string what;
  };
  std::vector<KvEntry> results;
  std::vector<OpError> errors;

  /// The ModifyIndex of everything that an applied transaction wrote; 0: it only deleted.
  [[nodiscard]] std::uint64_t greatest_index() const;
};
[[nodiscard]] Result<TxnReply> read_txn_reply(std::string_view body);
/// std::nullopt if `response` is no complete answer to a transaction.
[[nodiscard]] std::optional<TxnReply> txn_reply(const http::Response& response);

}  // namespace lictor::wire
