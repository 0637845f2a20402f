#pragma once

// The body of a transaction as text, in one buffer and without a JSON tree: every write of a leader
// goes through here.

#include <cstdint>
#include <string>
#include <string_view>

namespace lictor::wire {

/// Builds the body of /v1/txn: verb() begins an operation, the calls after it add its fields.
/// Consul refuses fields that it does not know (consul.md 3.4), so add only what the verb
/// needs.
class Txn {
 public:
  Txn& verb(std::string_view name, std::string_view key);
  /// Left out when it is 0, Consul's default: each field costs Consul a twentieth of the operation.
  Txn& index(std::uint64_t index);
  Txn& flags(std::uint64_t flags);
  Txn& session(std::string_view session);
  Txn& value(std::string_view value);  ///< any bytes

  /// Call once, last.
  [[nodiscard]] std::string body() &&;

 private:
  Txn& number(std::string_view before, std::uint64_t number);

  std::string text_;  // the last operation is still open
};

}  // namespace lictor::wire
