#include "wire/commit.h"

#include <charconv>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/try.h"

namespace lictor::wire {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKeyBytes = 512;

tl::unexpected<Error> refuse(std::size_t entry, const std::string& what) {
  return fail(ErrorCode::kInvalid, "entry " + std::to_string(entry + 1) + ": " + what);
}

// The owner of a key in this layout; empty: the key is none of lictor's. Tasks are not among them:
// a job may write new ones.
std::string owner_in(std::string_view key, const Layout& layout) {
  if (key == layout.leader_key || key.starts_with(layout.leader_key + "/")) {
    return "a leader's lock";
  }
  if (key == layout.partitions_key) return "the number of partitions";
  if (key == layout.rate_key) return "the bucket of rate_limit";
  if (key == layout.control_key) return "the operator's switches";
  if (key.starts_with(layout.dead_prefix)) return "a dead letter";
  if (key.starts_with(layout.done_prefix)) return "the history";
  if (key.starts_with(layout.members_prefix)) return "a member";
  if (key.starts_with(layout.schedules_prefix)) return "a schedule";
  return {};
}

// Why jobs may not write this key; empty: they may.
std::string owner_of(std::string_view key, const Reserved& reserved, std::string_view task_key) {
  if (key == task_key) return "the task itself";
  for (const Layout& layout : reserved.queues) {
    if (std::string owner = owner_in(key, layout); !owner.empty()) return owner;
  }
  if (!key.starts_with(reserved.root)) return {};
  const std::string_view rest = key.substr(reserved.root.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return {};
  return owner_in(key, Layout::under(reserved.root, rest.substr(0, slash)));
}

// `number` counts from 0; error messages count from 1.
Result<core::KvWrite> read_entry(const json& entry, std::size_t number) {
  if (!entry.is_object()) return refuse(number, "expected an object, got " + excerpt(entry.dump()));
  core::KvWrite write;
  bool has_value = false;
  for (const auto& [name, value] : entry.items()) {
    const auto expected = [&, &name = name, &value = value](const std::string& what) {
      return refuse(number, name + ": expected " + what + ", got " + excerpt(value.dump()));
    };
    if (name == "key") {
      if (!value.is_string()) return expected("a string");
      write.key = value.get<std::string>();
    } else if (name == "value") {
      if (!value.is_string()) return expected("a string");
      write.value = value.get<std::string>();
      has_value = true;
    } else if (name == "value_base64") {
      const auto bytes = value.is_string() ? base64_decode(value.get<std::string>()) : std::nullopt;
      if (!bytes) return expected("a string in base64");
      write.value = *bytes;
      has_value = true;
    } else if (name == "delete") {
      if (!value.is_boolean()) return expected("true or false");
      write.erase = value.get<bool>();
    } else if (name == "cas") {
      if (!value.is_number_unsigned()) return expected("a ModifyIndex (0: the key must not exist)");
      write.cas = value.get<std::uint64_t>();
    } else {
      return refuse(
          number, "expected key, value, value_base64, delete or cas, got \"" + excerpt(name) + '"');
    }
  }
  if (write.key.empty() || write.key.size() > kMaxKeyBytes) {
    return refuse(number, "key: expected 1 to " + std::to_string(kMaxKeyBytes) + " bytes, got " +
                              std::to_string(write.key.size()));
  }
  if (write.key.front() == '/') {
    return refuse(number,
                  "key: expected one that does not begin with \"/\", which Consul refuses, "
                  "got " +
                      excerpt(write.key));
  }
  if (entry.contains("value") && entry.contains("value_base64")) {
    return refuse(number, "expected either \"value\" or \"value_base64\", got both");
  }
  if (write.erase == has_value) {
    return refuse(number, "expected either a value or \"delete\": true, got " +
                              std::string{has_value ? "both" : "neither"});
  }
  return write;
}

// A full disk leaves an empty file, which is not a file without writes.
std::string found(std::string_view text) {
  return text.empty() ? "an empty file, as a full disk leaves it" : excerpt(text);
}

}  // namespace

Result<std::vector<core::KvWrite>> read_commit(std::string_view text, const Reserved& reserved,
                                               std::string_view task_key) {
  const auto parsed = is_utf8(text) ? parse_json(text) : std::nullopt;
  if (!parsed || !parsed->is_array()) {
    return fail(
        ErrorCode::kInvalid,
        R"(expected a JSON array such as [{"key": "app/x", "value": "text"}], got )" + found(text));
  }
  std::vector<core::KvWrite> writes;
  std::set<std::string> keys;
  for (const json& entry : *parsed) {
    LICTOR_TRY(auto write, read_entry(entry, writes.size()));
    if (const std::string owner = owner_of(write.key, reserved, task_key); !owner.empty()) {
      return refuse(writes.size(),
                    "key: " + excerpt(write.key) + " is " + owner + ", which a job may not write");
    }
    if (!keys.insert(write.key).second) {
      return refuse(writes.size(), "key: " + excerpt(write.key) +
                                       " is in an entry before it, and a commit writes a key once");
    }
    writes.push_back(std::move(write));
  }
  return writes;
}

Result<void> check_result(std::string_view text) {
  // The result is stored inside an object, where JSON allows no byte order mark.
  if (is_utf8(text) && !text.starts_with("\xef")) {
    if (const auto value = parse_json(text, kAnyDepth)) return check_depth(*value);
  }
  return fail(ErrorCode::kInvalid, "expected a JSON value, got " + found(text));
}

}  // namespace lictor::wire
