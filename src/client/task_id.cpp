#include "client/task_id.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/text.h"
#include "wire/consul.h"

namespace lictor::client {
namespace {

constexpr std::size_t kMaxIdBytes = 512;  // for people and for paths; Consul takes far more

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool may_be_unnameable(std::string_view key) { return contains(key, kReplacement); }

}  // namespace

std::string TaskIds::next(WallTime now) {
  const auto ms =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.time_since_epoch().count()));
  // The top bit stays free, so incrementing never overflows.
  last_bits_ = ms > last_ms_ ? random_.next() >> 1U : last_bits_ + 1;
  last_ms_ = std::max(last_ms_, ms);
  return fmt::format("{:012x}-{:016x}", last_ms_, last_bits_);
}

std::string key_fault(std::string_view key) {
  if (!is_utf8(key)) return "has bytes that are not UTF-8";
  // Consul refuses a path with characters that printable() escapes, and the no-break space.
  if (printable(key).size() != key.size() || contains(key, "\u00a0")) {
    return "has a character that cannot be printed";
  }
  if (key.starts_with('/')) return "begins with \"/\"";
  if (contains(key, "//")) return "has \"//\"";
  const std::string segments = '/' + std::string{key} + '/';
  for (const std::string segment : {".", ".."}) {
    if (contains(segments, '/' + segment + '/')) return "has the segment \"" + segment + '"';
  }
  return {};
}

std::string id_fault(std::string_view id) {
  if (id.empty()) return "is empty";
  if (id.ends_with('/')) return "ends in \"/\", which makes it a folder";
  if (id.size() > kMaxIdBytes) return "is longer than " + std::to_string(kMaxIdBytes) + " bytes";
  return key_fault(id);
}

bool is_json_pointer(std::string_view text) {
  if (!text.starts_with('/')) return false;
  for (std::size_t at = 0; (at = text.find('~', at)) != std::string_view::npos; ++at) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  }
  return true;
}

void mark_unnameable(Store& store, std::vector<TaskInfo>& tasks) {
  std::set<std::string> suspects;
  for (const TaskInfo& task : tasks) {
    if (may_be_unnameable(task.key)) suspects.insert(task.key);
  }
  const auto found = store.get_all({suspects.begin(), suspects.end()});
  if (!found) return;
  // Keys that differ only in such bytes are listed under one name; one of them may have it.
  std::set<std::pair<std::string, std::uint64_t>> named;
  for (const auto& entry : *found) {
    if (entry) named.emplace(entry->key, entry->create_index);
  }
  for (TaskInfo& task : tasks) {
    if (!suspects.contains(task.key) || named.contains({task.key, task.create_index})) continue;
    task.state = TaskState::kUnnameable;
    task.error = "its key is not UTF-8";
  }
}

std::string unnameable_hint(const std::string& prefix, const std::string& id) {
  const bool as_bytes = !is_utf8(id);
  if (!as_bytes && !may_be_unnameable(id)) return {};
  std::string path = wire::kv_path(prefix + id);
  // The original bytes are unknown; show %FF for each.
  constexpr std::string_view encoded = "%EF%BF%BD";
  for (std::size_t at = 0; !as_bytes && (at = path.find(encoded, at)) != std::string::npos;) {
    path.replace(at, encoded.size(), "%FF");
  }
  return fmt::format(
      "{}: lictor cannot run such a task, because Consul does not report the key; delete it by its "
      "bytes, with curl -X DELETE $CONSUL_HTTP_ADDR{}{}, and write the task under another key",
      as_bytes ? "the id is not UTF-8" : "if it is listed, its key is not UTF-8", path,
      as_bytes ? "" : " (the byte for each %FF)");
}

}  // namespace lictor::client
