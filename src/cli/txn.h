#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lictor::cli {

/// The body of a /v1/txn without a fence: what a client may do, as against a leader. Unknown
/// fields are errors there, so each verb says only what it needs.
class Txn {
 public:
  Txn& get(std::string_view key);
  Txn& cas(std::string_view key, std::uint64_t index, std::string_view value);
  Txn& check_not_exists(std::string_view key);
  Txn& check_index(std::string_view key, std::uint64_t index);

  [[nodiscard]] std::string body() const { return '[' + text_ + ']'; }
  [[nodiscard]] static std::size_t cas_bytes(std::string_view key, std::string_view value);

 private:
  Txn& verb(std::string_view name, std::string_view key, const std::string& rest);

  std::string text_;
};

}  // namespace lictor::cli
