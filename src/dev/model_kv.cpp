// /v1/kv (consul.md 2, 4.2, 9).

#include <array>
#include <utility>

#include "base/base64.h"
#include "dev/answer.h"
#include "dev/model.h"

namespace lictor::dev {
namespace {

constexpr std::size_t kMaxValueBytes = 524'288;

http::Response truth(bool value) { return answer(200, value ? "true" : "false"); }

// Refuses more than one of `names`.
std::optional<http::Response> conflict(const httpd::Url& url,
                                       std::initializer_list<std::string_view> names) {
  int found = 0;
  for (const std::string_view name : names) found += url.has(name) ? 1 : 0;
  if (found < 2) return std::nullopt;
  return answer(400, "Conflicting flags");
}

http::Response missing_key() { return answer(400, "Missing key name"); }

bool is_refused_name(std::string_view key) {
  constexpr std::string_view kTaken =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,_./-?&=";
  return key.find_first_not_of(kTaken) != std::string_view::npos ||
         key.find("..") != std::string_view::npos;
}

}  // namespace

void append_record(std::string& out, const KvRecord& record, bool with_value) {
  out += R"({"LockIndex":)" + std::to_string(record.lock_index) + R"(,"Key":)";
  out += quote(record.key);
  out += R"(,"Flags":)" + std::to_string(record.flags) + R"(,"Value":)";
  if (with_value && !record.value.empty()) {
    out += '"' + base64_encode(record.value) + '"';
  } else {
    out += "null";
  }
  if (!record.session.empty()) out += R"(,"Session":")" + record.session + '"';
  out += R"(,"CreateIndex":)" + std::to_string(record.create_index) + R"(,"ModifyIndex":)" +
         std::to_string(record.modify_index) + '}';
}

Model::Answer Model::kv(const Call& call, const std::string& key) {
  const std::string& method = call.request.method;
  if (options_.refuses_names && is_refused_name(key)) {
    return answer(500, "invalid key name, use only letters, digits and ,_./-?&=");
  }
  if (method == "PUT") return kv_put(call, key);
  if (method == "DELETE") return kv_delete(call, key);
  if (call.url.has("keys") || call.url.has("recurse")) return kv_list(call, key);
  return kv_get(call, key);
}

// A missing key has the index of its table, so a query waits for it.
Model::Answer Model::kv_get(const Call& call, const std::string& key) const {
  if (key.empty()) return missing_key();
  const KvRecord* record = state_.find(key);
  const std::uint64_t index = record == nullptr ? state_.table_index() : record->modify_index;
  if (blocks(call, index)) return std::nullopt;
  if (record == nullptr) return read_answer(404, index);
  if (call.url.has("raw")) return read_answer(200, index, record->value);
  std::string body = "[";
  append_record(body, *record);
  return read_answer(200, index, body + ']');
}

// `separator` folds the names of a folder into one. An empty list is a 404, except for the names of
// all keys.
Model::Answer Model::kv_list(const Call& call, const std::string& prefix) const {
  const std::uint64_t index = state_.prefix_index(prefix);
  if (blocks(call, index)) return std::nullopt;
  const bool names_only = call.url.has("keys");
  const auto [first, last] = state_.under(prefix);
  if (first == last && !(names_only && prefix.empty())) return read_answer(404, index);
  const std::string separator = call.url.get("separator");
  std::string body = "[";
  std::string_view previous;
  for (auto it = first; it != last; ++it) {
    std::string_view name = it->first;
    if (names_only && !separator.empty()) {
      const std::size_t at = name.find(separator, prefix.size());
      if (at != std::string_view::npos) name = name.substr(0, at + separator.size());
      if (name == previous) continue;
      previous = name;
    }
    if (body.size() > 1) body += ',';
    if (names_only) {
      body += quote(name);
    } else {
      append_record(body, it->second);
    }
  }
  return read_answer(200, index, body + ']');
}

// cas, acquire and release exclude each other. A lost CAS, or a lock that cannot be had, is a 200
// with "false"; a session that is missing or gone is an error.
http::Response Model::kv_put(const Call& call, const std::string& key) {
  const httpd::Url& url = call.url;
  if (key.empty()) return missing_key();
  if (const auto fault = conflict(url, {"cas", "acquire", "release"})) return *fault;
  KvRecord record;
  record.key = key;
  record.value = call.request.body;
  const std::array<std::pair<const char*, std::uint64_t*>, 2> numbers{
      {{"flags", &record.flags}, {"cas", &record.modify_index}}};
  for (const auto& [name, number] : numbers) {
    if (!url.has(name)) continue;
    const auto value = parse_go_uint(url.get(name));
    if (!value) return answer(500, value.error().message);
    *number = *value;
  }
  if (record.value.size() > kMaxValueBytes) {
    return answer(413, "Request body(" + std::to_string(record.value.size()) +
                           " bytes) too large, max size: 524288 bytes. See "
                           "https://www.consul.io/docs/agent/options.html#kv_max_value_size.");
  }
  const bool acquires = url.has("acquire");
  if (acquires || url.has("release")) {
    record.session = url.get(acquires ? "acquire" : "release");
    // Checked before the write gets its index (2.2).
    if (acquires && in_lock_delay(call.now, key)) return truth(false);
    state_.next_index();
    if (acquires) {
      if (std::string fault = session_fault(record.session); !fault.empty()) {
        return answer(500, std::move(fault));
      }
      return truth(state_.lock(record));
    }
    if (record.session.empty()) return answer(500, "missing session");
    return truth(state_.unlock(record));
  }
  state_.next_index();
  if (url.has("cas")) return truth(state_.compare_and_set(record));
  state_.set(record);
  return truth(true);
}

http::Response Model::kv_delete(const Call& call, const std::string& key) {
  const httpd::Url& url = call.url;
  if (const auto fault = conflict(url, {"recurse", "cas"})) return *fault;
  if (url.has("recurse")) {
    state_.next_index();
    state_.erase_tree(key);
    return truth(true);
  }
  if (key.empty()) return missing_key();
  if (!url.has("cas")) {
    state_.next_index();
    state_.erase(key);
    return truth(true);
  }
  const auto index = parse_go_uint(url.get("cas"));
  if (!index) return answer(500, index.error().message);
  state_.next_index();
  return truth(state_.compare_and_erase(key, *index));
}

}  // namespace lictor::dev
