#include "wire/txn.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/base64.h"
#include "core/mutant.h"
#include "wire/json_text.h"

namespace lictor::wire {

Txn& Txn::verb(std::string_view name, std::string_view key) {
  text_ += text_.empty() ? "[" : "}},";
  text_ += R"({"KV":{"Verb":")";
  text_ += name;
  text_ += '"';
  begin("Key");
  append_quoted(text_, key);
  return *this;
}

Txn& Txn::index(std::uint64_t index) { return number("Index", index); }

Txn& Txn::flags(std::uint64_t flags) { return number("Flags", flags); }

Txn& Txn::session(std::string_view session) {
  begin("Session");
  append_quoted(text_, session);
  return *this;
}

Txn& Txn::value(std::string_view value) {
  begin("Value");
  if (core::mutant(core::Mutant::kValueAsText)) {
    append_quoted(text_, value);
    return *this;
  }
  text_ += '"';
  append_base64(text_, value);
  text_ += '"';
  return *this;
}

Txn& Txn::begin(std::string_view name) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
  return *this;
}

Txn& Txn::number(std::string_view name, std::uint64_t number) {
  begin(name);
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text_.append(digits.data(), end);
  return *this;
}

std::string Txn::body() && {
  text_ += text_.empty() ? "[]" : "}}]";
  return std::move(text_);
}

}  // namespace lictor::wire
