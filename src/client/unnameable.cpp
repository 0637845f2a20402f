#include "client/unnameable.h"

#include <cstddef>

#include "base/printable.h"
#include "base/text.h"
#include "wire/consul.h"

namespace lictor::client {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool may_be_unnameable(std::string_view key) {
  return key.find(kReplacement) != std::string_view::npos;
}

}  // namespace

UnnameableKeys::UnnameableKeys(Store& store, const std::vector<wire::KvEntry>& listed) {
  std::vector<std::string> asked;
  for (const wire::KvEntry& entry : listed) {
    if (!may_be_unnameable(entry.key)) continue;
    // Keys that differ in such bytes alone are listed under one name.
    keys_.emplace(entry.key, entry.create_index);
    if (asked.empty() || asked.back() != entry.key) asked.push_back(entry.key);
  }
  if (asked.empty()) return;
  const auto found = store.get_all(asked);
  if (!found) keys_.clear();
  if (!found) return;
  for (const auto& entry : *found) {
    if (entry) keys_.erase({entry->key, entry->create_index});
  }
}

void UnnameableKeys::mark(TaskInfo& task) const {
  if (!keys_.contains({task.key, task.create_index})) return;
  task.state = TaskState::kUnnameable;
  task.error = "its key is not UTF-8";
}

std::string unnameable_hint(const wire::Layout& layout, const std::string& id) {
  const bool as_bytes = !is_utf8(id);
  if (!as_bytes && !may_be_unnameable(id)) return {};
  std::string path = wire::kv_path(layout.task_key(id));
  // What the bytes were, only whoever wrote them knows.
  constexpr std::string_view encoded = "%EF%BF%BD";
  for (std::size_t at = 0; !as_bytes && (at = path.find(encoded, at)) != std::string::npos;) {
    path.replace(at, encoded.size(), "%FF");
  }
  return std::string{as_bytes ? "the id is not UTF-8" : "if it is listed, its key is not UTF-8"} +
         ": Consul cannot tell such a key to lictor, so that it is never run; delete it by its "
         "bytes, with curl -X DELETE $CONSUL_HTTP_ADDR" +
         path + (as_bytes ? "" : " (the byte for each %FF)") + ", and write it anew";
}

}  // namespace lictor::client
