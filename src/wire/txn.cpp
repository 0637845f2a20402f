#include "wire/txn.h"

#include <utility>

#include "base/base64.h"
#include "base/json_text.h"

namespace lictor::wire {

Txn& Txn::verb(std::string_view name, std::string_view key) {
  text_ += text_.empty() ? R"([{"KV":{"Verb":")" : R"(}},{"KV":{"Verb":")";
  text_ += name;
  text_ += R"(","Key":)";
  append_quoted(text_, key);
  return *this;
}

Txn& Txn::index(std::uint64_t index) { return number(R"(,"Index":)", index); }

Txn& Txn::flags(std::uint64_t flags) { return number(R"(,"Flags":)", flags); }

Txn& Txn::session(std::string_view session) {
  text_ += R"(,"Session":)";
  append_quoted(text_, session);
  return *this;
}

Txn& Txn::value(std::string_view value) {
  text_ += R"(,"Value":")";
  append_base64(text_, value);
  text_ += '"';
  return *this;
}

Txn& Txn::number(std::string_view before, std::uint64_t number) {
  if (number == 0) return *this;
  text_.append(before).append(std::to_string(number));
  return *this;
}

std::string Txn::body() && {
  text_ += text_.empty() ? "[]" : "}}]";
  return std::move(text_);
}

}  // namespace lictor::wire
