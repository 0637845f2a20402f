#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "base/try.h"
#include "client/new_record.h"
#include "client/queue.h"
#include "client/task_info.h"
#include "wire/json_text.h"
#include "wire/record.h"

namespace lictor::client {
namespace {

// Copies probed at once. Purged letters leave gaps, so only so many missing in a row end the
// search.
constexpr std::uint32_t kProbed = 16;

}  // namespace

Result<std::vector<TaskInfo>> dead_letters_of(const Queue& queue, const std::string& id) {
  const std::string task_key = queue.layout.task_key(id);
  std::vector<TaskInfo> letters;
  // Read alone: a read of many keys reports a missing right only for keys that exist.
  LICTOR_TRY(auto first, queue.store.get(queue.layout.dead_key(task_key, 1)));
  if (first) letters.push_back(view_dead_letter(queue.layout, *std::move(first)));

  for (std::uint32_t copy = 2;; copy += kProbed) {
    std::vector<std::string> keys;
    for (std::uint32_t i = 0; i < kProbed; ++i) {
      keys.push_back(queue.layout.dead_key(task_key, copy + i));
    }
    LICTOR_TRY(auto entries, queue.store.get_all(keys));
    bool any = false;
    for (auto& entry : entries) {
      if (!entry) continue;
      any = true;
      letters.push_back(view_dead_letter(queue.layout, *std::move(entry)));
    }
    if (!any) return letters;
  }
}

Result<std::string> retried_record(std::string_view letter, WallTime now, bool drop_expiry) {
  const auto members = wire::split_object(letter);
  std::string record;
  for (const wire::Member& member : members.value_or(std::vector<wire::Member>{})) {
    const bool is_object = member.value_text.starts_with('{');
    if (member.name == "record" && is_object) record = wire::unstamped_record(member.value_text);
  }
  const auto fields = wire::split_object(record);
  if (!fields) {
    return fail(ErrorCode::kInvalid,
                "its record is not a valid task, so a retry cannot succeed; look at it with "
                "\"lictor dead show\", submit a corrected task, and purge the dead letter");
  }
  ObjectText kept;
  for (const wire::Member& member : *fields) {
    if (member.name == "expireAt" && member.value_text != "null") {
      if (drop_expiry) continue;
      const auto expiry = wire::read_time(member.value_text);
      if (expiry && *expiry <= now) {
        return fail(ErrorCode::kInvalid, "its expireAt, " + format_rfc3339(*expiry) +
                                             ", has passed; --drop-expiry removes it");
      }
    }
    kept.add_raw(member.name_text, member.value_text);
  }
  return kept.take();
}

std::string task_of_letter(const TaskInfo& letter) {
  const std::string_view task = id_before_copy(letter.id);
  if (task.empty()) return letter.id;
  const auto value = wire::parse_json(letter.record);
  if (value && value->is_object() && value->contains("record")) {
    const auto& record = (*value)["record"];
    if (record.is_object() && record.value("taskId", nlohmann::json{}) == letter.id) {
      return letter.id;
    }
  }
  return std::string{task};
}

}  // namespace lictor::client
