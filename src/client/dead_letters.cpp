#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/new_record.h"
#include "client/queue.h"
#include "client/task_info.h"
#include "wire/record.h"

namespace lictor::client {
namespace {

// Whether lictor may have made `key` from the name `first` of a task's first dead letter:
// "<first>,<index>", and "<first>~2" in versions that counted them.
bool is_later_name(std::string_view key, std::string_view first) {
  return key.size() > first.size() && key.starts_with(first) &&
         (key[first.size()] == ',' || key[first.size()] == '~');
}

}  // namespace

Result<Letters> dead_letters_of(const Queue& queue, const std::string& id) {
  const std::string key = queue.layout.dead_prefix + id;
  // Read alone: only a single key tells a missing right from a missing key.
  LICTOR_TRY(auto first, queue.store.get(key));
  LICTOR_TRY(auto names, queue.store.names(key));
  std::erase_if(names, [&](const std::string& name) { return !is_later_name(name, key); });
  LICTOR_TRY(auto entries, queue.store.get_all(names));
  entries.push_back(std::move(first));
  Letters letters;
  for (auto& entry : entries) {
    if (!entry) continue;
    TaskInfo letter = view_dead_letter(queue.layout, *std::move(entry));
    if (letter.task_id == id) {
      letters.of_task.push_back(std::move(letter));
    } else if (letter.id == id) {
      letters.named = std::move(letter);
    }
  }
  std::sort(letters.of_task.begin(), letters.of_task.end(),
            [](const auto& a, const auto& b) { return a.create_index < b.create_index; });
  return letters;
}

Result<std::string> retried_record(std::string_view letter, WallTime now, bool drop_expiry) {
  const auto members = split_object(letter);
  std::string record;
  for (const JsonMember& member : members.value_or(std::vector<JsonMember>{})) {
    const bool is_object = member.value_text.starts_with('{');
    if (member.name == "record" && is_object) record = wire::unstamped_record(member.value_text);
  }
  const auto fields = split_object(record);
  if (!fields) {
    return fail(ErrorCode::kInvalid,
                "its record is not a valid task, so a retry cannot succeed: submit a corrected "
                "task, and purge the dead letter; \"lictor dead show ID\" shows the record");
  }
  ObjectText kept;
  for (const JsonMember& member : *fields) {
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

}  // namespace lictor::client
