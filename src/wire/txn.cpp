#include "wire/txn.h"

#include <utility>

#include "base/base64.h"
#include "core/mutant.h"
#include "wire/json_text.h"

namespace lictor::wire {

Txn& Txn::verb(std::string_view name, std::string_view key) {
  text_ += text_.size() == 1 ? "" : "}},";
  text_ += R"({"KV":{"Verb":")";
  text_ += name;
  text_ += '"';
  return add("Key", json_quoted(key));
}

Txn& Txn::index(std::uint64_t index) { return add("Index", std::to_string(index)); }

Txn& Txn::flags(std::uint64_t flags) { return add("Flags", std::to_string(flags)); }

Txn& Txn::session(std::string_view session) { return add("Session", json_quoted(session)); }

Txn& Txn::value(std::string_view value) {
  if (core::mutant(core::Mutant::kValueAsText)) return add("Value", json_quoted(value));
  return add("Value", '"' + base64_encode(value) + '"');
}

Txn& Txn::add(std::string_view name, std::string_view json) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
  text_ += json;
  return *this;
}

std::string Txn::body() && {
  text_ += text_.size() == 1 ? "]" : "}}]";
  return std::move(text_);
}

}  // namespace lictor::wire
