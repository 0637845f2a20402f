#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lictor::wire {

/// Builds the body of /v1/txn: verb() begins an operation, what follows belongs to it. Unknown
/// fields are errors there (CONSUL-FACTS.md 3.4), so only what a verb needs is to be said.
class Txn {
 public:
  Txn() = default;
  /// For a body of so many bytes, or about.
  explicit Txn(std::size_t bytes) { text_.reserve(bytes); }

  Txn& verb(std::string_view name, std::string_view key);
  /// What is not said is 0, and each field costs Consul a twentieth of the operation: 0 is not
  /// said.
  Txn& index(std::uint64_t index);
  Txn& flags(std::uint64_t flags);
  Txn& session(std::string_view session);
  Txn& value(std::string_view value);  ///< any bytes

  /// Once, at the end.
  [[nodiscard]] std::string body() &&;

 private:
  Txn& number(std::string_view before, std::uint64_t number);

  std::string text_;  // the last operation is still open
};

}  // namespace lictor::wire
