// Dead letters: back to the waiting tasks, or away.

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "client/change.h"
#include "client/dead_letters.h"
#include "client/task_info.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

auto view_letters_of(const Queue& queue) {
  return [&queue](wire::KvEntry entry) { return view_dead_letter(queue.layout, std::move(entry)); };
}

Plan retry_plan(const Queue& queue, bool drop_expiry) {
  const auto change = [&queue, drop_expiry](const TaskInfo& letter) -> Result<PlannedChange> {
    PlannedChange planned;
    auto record = retried_record(letter.record, wall_now(), drop_expiry);
    if (!record) {
      return fail(record.error().code,
                  "dead letter " + printable(letter.id) + ": " + record.error().message);
    }
    const std::string id = task_of_letter(letter);
    const std::string key = queue.layout.task_key(id);
    planned.conflict = "task " + printable(id) + " exists in queue \"" + queue.name +
                       "\", so its dead letter " + printable(letter.id) + " was left as it is";
    planned.change = removal(letter.key, letter.modify_index);
    if (const std::size_t most = wire::record_limit(queue.layout, key); record->size() > most) {
      return fail(ErrorCode::kTooLarge, "dead letter " + printable(letter.id) + ": its record of " +
                                            std::to_string(record->size()) +
                                            " bytes is too large to be claimed (at most " +
                                            std::to_string(most) +
                                            "); submit the task anew, smaller");
    }
    planned.change.insert(planned.change.begin() + 1,
                          {Store::Op::Verb::kCas, key, 0, std::move(*record)});
    return planned;
  };
  return {view_letters_of(queue), change};
}

Plan purge_plan(const Queue& queue) { return {view_letters_of(queue), plan_removal}; }

Error no_letter(const Queue& queue, const std::string& id) {
  return {ErrorCode::kNotFound, "no dead letter " + printable(id) + " in queue \"" + queue.name +
                                    "\" (" + queue.layout.dead_prefix + ")"};
}

Result<TaskList> list_letters(const Queue& queue, TaskFilter filter) {
  filter.state = TaskState::kDead;
  return list_tasks(queue, filter);
}

}  // namespace

Result<TaskInfo> retry_task(const Queue& queue, const std::string& id, bool drop_expiry) {
  const auto letters = dead_letters_of(queue, id);
  if (!letters) return tl::unexpected(letters.error());
  if (letters->empty()) return tl::unexpected(no_letter(queue, id));
  const auto newest = std::max_element(
      letters->begin(), letters->end(),
      [](const auto& a, const auto& b) { return a.create_index < b.create_index; });
  return change_one(queue, newest->key, retry_plan(queue, drop_expiry));
}

Result<BulkResult> retry_tasks(const Queue& queue, const TaskFilter& filter, bool drop_expiry,
                               const Progress& progress) {
  auto listed = list_letters(queue, filter);
  if (!listed) return tl::unexpected(std::move(listed.error()));
  // Of each task the newest; the others would only be in its way.
  std::map<std::string, std::uint64_t> newest;
  for (const TaskInfo& letter : listed->tasks) {
    std::uint64_t& index = newest[task_of_letter(letter)];
    index = std::max(index, letter.create_index);
  }
  std::vector<TaskInfo> chosen;
  std::vector<BulkResult::Refusal> left;
  for (TaskInfo& letter : listed->tasks) {
    const std::string task = task_of_letter(letter);
    if (letter.create_index == newest[task]) {
      chosen.push_back(std::move(letter));
    } else {
      left.push_back({letter.id,
                      {ErrorCode::kConflict,
                       "task " + printable(task) + " has a newer dead letter, which was chosen"}});
    }
  }
  BulkResult result =
      change_many(queue, std::move(chosen), retry_plan(queue, drop_expiry), progress);
  std::move(left.begin(), left.end(), std::back_inserter(result.refused));
  return result;
}

Result<TaskInfo> purge_letter(const Queue& queue, const std::string& id) {
  auto purged = change_one(queue, queue.layout.dead_prefix + id, purge_plan(queue));
  if (purged || purged.error().code != ErrorCode::kNotFound) return purged;
  return tl::unexpected(no_letter(queue, id));
}

Result<BulkResult> purge_letters(const Queue& queue, const TaskFilter& filter,
                                 const Progress& progress) {
  auto listed = list_letters(queue, filter);
  if (!listed) return tl::unexpected(std::move(listed.error()));
  return change_many(queue, std::move(listed->tasks), purge_plan(queue), progress);
}

}  // namespace lictor::client
