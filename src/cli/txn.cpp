#include "cli/txn.h"

#include "base/base64.h"
#include "wire/json_text.h"

namespace lictor::cli {

Txn& Txn::verb(std::string_view name, std::string_view key, const std::string& rest) {
  text_ += text_.empty() ? "" : ",";
  text_ += R"({"KV":{"Verb":")";
  text_ += name;
  text_ += R"(","Key":)";
  text_ += wire::json_quoted(key);
  text_ += rest;
  text_ += "}}";
  return *this;
}

Txn& Txn::get(std::string_view key) { return verb("get", key, {}); }

Txn& Txn::cas(std::string_view key, std::uint64_t index, std::string_view value) {
  return verb("cas", key,
              ",\"Index\":" + std::to_string(index) + ",\"Value\":\"" + base64_encode(value) + '"');
}

Txn& Txn::check_not_exists(std::string_view key) { return verb("check-not-exists", key, {}); }

Txn& Txn::check_index(std::string_view key, std::uint64_t index) {
  return verb("check-index", key, ",\"Index\":" + std::to_string(index));
}

std::size_t Txn::cas_bytes(std::string_view key, std::string_view value) {
  constexpr std::size_t kFrame =
      80;  // {"KV":{"Verb":"cas","Key":,"Index":<20 digits>,"Value":""}},
  return kFrame + wire::json_quoted(key).size() + (value.size() + 2) / 3 * 4;
}

}  // namespace lictor::cli
