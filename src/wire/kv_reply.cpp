#include "wire/kv_reply.h"

#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/text.h"

namespace lictor::wire {
namespace {

namespace dom = simdjson::dom;

// Sets the fields of an entry that the object has. Errors: an unreadable field.
Result<void> read_entry(dom::object object, KvEntry& entry) {
  for (const auto [name, value] : object) {
    if (std::string_view text; value.get(text) == simdjson::SUCCESS) {
      if (name == "Key") entry.key = text;
      if (name == "Session") entry.session = text;
      if (name != "Value") continue;
      auto decoded = base64_decode(text);
      if (!decoded) return fail(ErrorCode::kFailed, "a Value that is not base64");
      entry.value = std::move(*decoded);
    } else if (std::uint64_t number = 0; value.get(number) == simdjson::SUCCESS) {
      if (name == "CreateIndex") entry.create_index = number;
      if (name == "ModifyIndex") entry.modify_index = number;
      if (name == "Flags") entry.flags = number;
    }
  }
  return {};
}

// `wrapped`: each entry is the only field, KV, of an object. A folder or a lock without a value is
// an entry too; an object without a Key is none.
Result<void> read_entries(dom::element list, bool wrapped, std::vector<KvEntry>& entries) {
  dom::array array;
  if (list.get(array) != simdjson::SUCCESS) return {};  // null
  entries.reserve(array.size());
  for (const dom::element element : array) {
    dom::object object;
    const auto error = wrapped ? element["KV"].get(object) : element.get(object);
    std::string_view key;
    if (error != simdjson::SUCCESS || object["Key"].get(key) != simdjson::SUCCESS) continue;
    if (auto read = read_entry(object, entries.emplace_back()); !read) return read;
  }
  return {};
}

void read_errors(dom::element list, std::vector<TxnReply::OpError>& errors) {
  dom::array array;
  if (list.get(array) != simdjson::SUCCESS) return;  // null
  for (const dom::element element : array) {
    std::uint64_t index = 0;
    std::string_view what;
    if (element["What"].get(what) != simdjson::SUCCESS) continue;
    if (element["OpIndex"].get(index) != simdjson::SUCCESS) index = 0;
    errors.push_back({static_cast<std::size_t>(index), std::string{what}});
  }
}

// Calls `read(element)` with the parsed body. `padded`: behind the text there are the spare bytes
// that simdjson needs, so the text need not be copied.
template <class Read>
Result<void> parse(std::string_view body, bool padded, Read read) {
  dom::parser parser;
  dom::element root;
  const auto error = parser.parse(body.data(), body.size(), !padded).get(root);
  Result<void> done = error == simdjson::SUCCESS
                          ? read(root)
                          : fail(ErrorCode::kFailed, simdjson::error_message(error));
  if (done) return done;
  return fail(ErrorCode::kFailed,
              "expected Consul's JSON, got " + excerpt(body) + ": " + done.error().message);
}

}  // namespace

Result<std::vector<KvEntry>> read_kv_entries(std::string body) {
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  std::vector<KvEntry> entries;
  const auto read = [&](dom::element root) { return read_entries(root, false, entries); };
  return parse(body, true, read).map([&] { return std::move(entries); });
}

// A body without "Results" or "Errors" gives an empty reply; callers check the one they need.
Result<TxnReply> read_txn_reply(std::string_view body) {
  TxnReply reply;
  const auto read = [&](dom::element root) -> Result<void> {
    dom::element results, errors;
    if (root["Errors"].get(errors) == simdjson::SUCCESS) read_errors(errors, reply.errors);
    if (root["Results"].get(results) != simdjson::SUCCESS) return {};
    return read_entries(results, true, reply.results);
  };
  return parse(body, false, read).map([&] { return std::move(reply); });
}

std::optional<TxnReply> txn_reply(const http::Response& response) {
  if (!replied(response, 200) && !replied(response, 409)) return std::nullopt;
  auto reply = read_txn_reply(response.body);
  return reply ? std::optional{*std::move(reply)} : std::nullopt;
}

std::uint64_t TxnReply::greatest_index() const {
  std::uint64_t greatest = 0;
  for (const KvEntry& entry : results) greatest = std::max(greatest, entry.modify_index);
  return greatest;
}

Result<core::KeyList> read_key_names(std::string body) {
  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  auto text = std::make_shared<std::string>();
  text->reserve(body.size());  // so that the names stay where they are
  std::vector<std::string_view> names;
  const auto read = [&](dom::element root) -> Result<void> {
    dom::array array;
    if (root.get(array) != simdjson::SUCCESS) {
      return fail(ErrorCode::kFailed, "it is no array of names");
    }
    names.reserve(array.size());
    for (const dom::element element : array) {
      std::string_view name;
      if (element.get(name) != simdjson::SUCCESS) continue;
      text->append(name);
      names.push_back(std::string_view{*text}.substr(text->size() - name.size()));
    }
    return {};
  };
  return parse(body, true, read).map([&] {
    return core::KeyList{std::move(text), std::move(names)};
  });
}

}  // namespace lictor::wire
