#include "client/drain.h"

#include <optional>

#include "base/clock.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/change.h"
#include "client/control.h"
#include "client/new_record.h"
#include "client/retry.h"
#include "wire/json_text.h"

namespace lictor::client {
namespace {

constexpr int kTries = 10;

}  // namespace

std::string drain_key(const wire::Layout& layout, std::string_view node) {
  return layout.members_prefix + std::string{node} + "/drain";
}

Result<bool> is_draining(Store& store, const wire::Layout& layout, const std::string& node) {
  LICTOR_TRY(const auto entry, store.get(drain_key(layout, node)));
  return entry.has_value();
}

Result<bool> begin_drain(Store& store, const wire::Layout& layout, const std::string& node) {
  ObjectText wish;
  wish.add("by", wire::json_quoted(who_asks()));
  wish.add("at", wire::json_quoted(format_rfc3339(wall_now())));
  return store.replace(drain_key(layout, node), 0, wish.take());
}

Result<bool> end_drain(Store& store, const wire::Layout& layout, const std::string& node) {
  const std::string key = drain_key(layout, node);
  return retry_conflicts(key, kTries, [&]() -> std::optional<Result<bool>> {
    LICTOR_TRY(const auto entry, store.get(key));
    if (!entry) return false;
    LICTOR_TRY(const auto refused, store.apply({removal(key, entry->modify_index)}));
    if (!refused.front()) return true;
    return std::nullopt;
  });
}

}  // namespace lictor::client
