#include "wire/kv_reply.h"

#include <simdjson.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace lictor::wire {
namespace {

namespace dom = simdjson::dom;

// Sets what the object has of an entry's fields. Errors: what cannot be read of it.
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

// Reads the usual answer, ["a","b"] in plain ASCII, at the speed of copying: with 100,000 tasks
// each comparison reads 2 MB of names. std::nullopt: the text has another form.
std::optional<std::vector<std::string_view>> plain_names(std::string_view body) {
  while (!body.empty() && body.back() == '\n') body.remove_suffix(1);
  if (body.size() < 2 || body.front() != '[' || body.back() != ']') return std::nullopt;
  if (!is_printable_ascii(body) || body.find('\\') != std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> names;
  if (body == "[]") return names;
  names.reserve(static_cast<std::size_t>(std::count(body.begin(), body.end(), ',')) + 1);
  for (std::size_t at = 1;;) {
    if (body[at] != '"') return std::nullopt;
    const std::size_t end = body.find('"', at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    names.push_back(body.substr(at + 1, end - at - 1));
    at = end + 1;
    if (at + 1 == body.size()) return names;  // the bracket
    if (body[at] != ',') return std::nullopt;
    ++at;
  }
}

// Calls `read(element)` with the parsed body. `padded`: behind the text there are the spare bytes
// that simdjson needs, so the text need not be copied.
template <class Read>
Result<void> parse(std::string_view body, bool padded, Read read) {
  constexpr std::size_t kKept = 64 * 1024;
  thread_local dom::parser kept{kKept};  // of short replies: its memory is used again
  dom::parser large;
  dom::parser& parser = body.size() > kKept ? large : kept;
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

// A body without "Results" or "Errors" gives an empty reply; callers check which of them they need.
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
  auto text = std::make_shared<const std::string>(std::move(body));
  if (auto plain = plain_names(*text)) return core::KeyList{std::move(text), *std::move(plain)};
  const auto array = nlohmann::json::parse(*text, nullptr, false);
  if (!array.is_array()) {
    return fail(ErrorCode::kFailed, "expected a JSON array of names, got " + excerpt(*text));
  }
  std::vector<std::string> names;
  for (const auto& name : array) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return core::KeyList{names};
}

}  // namespace lictor::wire
