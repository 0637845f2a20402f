#include "client/queue.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/change.h"
#include "client/client.h"
#include "client/control.h"
#include "client/locks.h"
#include "client/new_record.h"
#include "client/retry.h"
#include "client/task_id.h"
#include "client/task_info.h"
#include "wire/consul.h"
#include "wire/record.h"
#include "wire/transaction_plan.h"

namespace lictor::client {
namespace {

using nlohmann::json;

// `filter.error` is compared by error_kind(), so that one filter takes all tasks that failed alike.
bool wanted(const TaskInfo& task, const TaskFilter& filter) {
  if (filter.state && listed_state(task.state) != *filter.state) return false;
  if (!filter.type.empty() && task.type != filter.type) return false;
  if (!filter.reason.empty() && task.reason != filter.reason) return false;
  if (!filter.error.empty() &&
      error_kind(task.error, task.reason) != error_kind(filter.error, task.reason)) {
    return false;
  }
  return !filter.before || (task.since && *task.since < *filter.before);
}

using View = TaskInfo (*)(const wire::Layout&, wire::KvEntry);

// Adds the dead letters or the history. A missing right is an error if they alone are asked for.
Result<void> gather_ended(const Queue& queue, const std::string& prefix, View view,
                          const TaskFilter& filter, TaskList& gathered) {
  auto listed = queue.store.list(prefix);
  const bool denied = !listed && listed.error().code == ErrorCode::kPermissionDenied;
  if (!listed && (!denied || filter.state)) return tl::unexpected(std::move(listed.error()));
  if (denied || listed->hidden) gathered.hidden.push_back(prefix);
  if (denied) return {};
  for (wire::KvEntry& entry : listed->entries) {
    if (entry.key.ends_with('/')) continue;
    TaskInfo task = view(queue.layout, std::move(entry));
    if (wanted(task, filter)) gathered.tasks.push_back(std::move(task));
  }
  return {};
}

std::string no_task(const Queue& queue, const std::string& id) {
  return fmt::format("no task {} in queue \"{}\"", printable(id), queue.name);
}

Result<void> gather_tasks(const Queue& queue, const TaskFilter& filter, TaskList& gathered) {
  LICTOR_TRY(auto listed, queue.store.list(queue.layout.tasks_prefix));
  auto read = read_locks(queue.store, queue.layout);
  if (!read && read.error().code != ErrorCode::kPermissionDenied) {
    return tl::unexpected(std::move(read.error()));
  }
  const Locks locks = locks_if_known(std::move(read));
  if (listed.hidden) gathered.hidden.push_back(queue.layout.tasks_prefix);
  gathered.tasks.reserve(listed.entries.size());
  for (wire::KvEntry& entry : listed.entries) {
    if (!queue.layout.task_id(entry.key)) continue;  // a folder
    gathered.tasks.push_back(view_task(queue.layout, std::move(entry), locks, wall_now()));
  }
  mark_unnameable(queue.store, gathered.tasks);
  std::erase_if(gathered.tasks, [&](const TaskInfo& task) { return !wanted(task, filter); });
  return {};
}

}  // namespace

Result<Letters> dead_letters_of(const Queue& queue, const std::string& id) {
  const std::string key = queue.layout.dead_prefix + id;
  // Read alone: only the read of a single key distinguishes a missing right from a missing key.
  LICTOR_TRY(auto first, queue.store.get(key));
  LICTOR_TRY(auto names, queue.store.names(key));
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(key + ','); });
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
    return fail(
        ErrorCode::kInvalid,
        "its record is not a valid task, so a retry cannot succeed: submit a corrected "
        "task, and purge the dead letter; \"lictor dead show\" with the id shows its record");
  }
  ObjectText kept;
  for (const JsonMember& member : *fields) {
    if (member.name == "expireAt" && member.value_text != "null") {
      if (drop_expiry) continue;
      const auto expiry = wire::read_time(member.value_text);
      if (expiry && *expiry <= now) {
        return fail(
            ErrorCode::kInvalid,
            "its expireAt, " + format_rfc3339(*expiry) +
                ", has passed; retry it with --drop-expiry, or with drop_expiry in the API");
      }
    }
    kept.add_raw(member.name_text, member.value_text);
  }
  return kept.take();
}

Result<TaskList> list_tasks(const Queue& queue, const TaskFilter& filter) {
  TaskList gathered;
  Result<void> read;
  if (filter.state == TaskState::kDone) {
    read = gather_ended(queue, queue.layout.done_prefix, view_done, filter, gathered);
  } else {
    if (filter.state != TaskState::kDead) read = gather_tasks(queue, filter, gathered);
    if (read && (!filter.state || filter.state == TaskState::kDead)) {
      read = gather_ended(queue, queue.layout.dead_prefix, view_dead_letter, filter, gathered);
    }
  }
  if (!read) return tl::unexpected(std::move(read.error()));
  std::ranges::sort(gathered.tasks, listed_before);
  return gathered;
}

Result<std::vector<TaskInfo>> show_task(const Queue& queue, const std::string& id) {
  std::vector<TaskInfo> found;
  LICTOR_TRY(auto task, queue.store.get(queue.layout.task_key(id)));
  if (task) {
    const Locks locks = locks_if_known(read_locks(queue.store, queue.layout));
    found.push_back(view_task(queue.layout, *std::move(task), locks, wall_now()));
  }
  auto letters = dead_letters_of(queue, id);
  if (letters) {
    auto& of_task = letters->of_task;
    std::move(of_task.begin(), of_task.end(), std::back_inserter(found));
    if (letters->named) found.push_back(*std::move(letters->named));
  }
  auto done = queue.store.get(queue.done_key(id));
  if (done && *done) found.push_back(view_done(queue.layout, std::move(**done)));
  if (!found.empty()) return found;

  // Without all rights, "not found" cannot be known.
  if (!letters) return tl::unexpected(std::move(letters.error()));
  if (!done && done.error().code != ErrorCode::kPermissionDenied) {
    return tl::unexpected(std::move(done.error()));
  }
  const std::string hint = unnameable_hint(queue.layout.tasks_prefix, id);
  return fail(
      ErrorCode::kNotFound,
      no_task(queue, id) + ", neither waiting nor dead" +
          (hint.empty() ? fmt::format(" (looked at {} and below {}); a finished task is "
                                      "gone, unless the queue keeps a history; so is one whose key "
                                      "was deleted: \"lictor events --task {}\" may know",
                                      printable(queue.layout.task_key(id)),
                                      queue.layout.dead_prefix, shell_word(id))
                        : "; " + hint));
}

namespace {

// Whether the leader keeps finished tasks. Its entry among the members says so, since a reload may
// change it.
bool keeps_history(const Queue& queue, const std::string& leader) {
  if (leader.empty()) return false;
  const auto member = queue.store.get(queue.layout.members_prefix + leader);
  const auto value = member && *member ? parse_json((*member)->value) : std::nullopt;
  if (!value || !value->is_object()) return false;
  const auto queues = value->value("history", json::array());
  return std::find(queues.begin(), queues.end(), queue.name) != queues.end();
}

// The history entry of a cancelled task.
std::string cancelled_record(const TaskInfo& task) {
  // A transaction has no room for two large records.
  constexpr std::size_t kMostBytes = 200'000;
  ObjectText text;
  if (task.state != TaskState::kUnreadable && task.record.size() <= kMostBytes) {
    text.add("record", wire::unstamped_record(task.record));
  }
  text.add("cancelled_by", json_quoted(who_asks()));
  text.add("attempts", std::to_string(task.attempt));
  text.add("at", json_quoted(format_rfc3339(wall_now())));
  return text.take();
}

// The two ways to cancel a task.
struct Cancelling {
  Plan silent;    // deletes the task
  Plan recorded;  // and leaves a record
  Locks locks;

  // The node of any leader, present or former: all are configured alike. Empty: it is not known.
  [[nodiscard]] std::string leader() const {
    for (const LockView& lock : locks) {
      if (std::string node = lock.text("node"); !node.empty()) return node;
    }
    return {};
  }
};

// Errors: Consul does not answer.
Result<Cancelling> cancelling(const Queue& queue) {
  // Only needed to describe a claimed task, so other errors are ignored.
  auto read = read_locks(queue.store, queue.layout);
  if (!read && is_temporary(read.error())) return tl::unexpected(unchanged(read.error()));
  Locks locks = locks_if_known(std::move(read));
  const auto view = [&queue, locks](wire::KvEntry entry) {
    return view_task(queue.layout, std::move(entry), locks, wall_now());
  };
  const auto record = [&queue](const TaskInfo& task) -> Result<PlannedChange> {
    Store::Change change = removal(task.key, task.modify_index);
    change.push_back({Store::Op::Verb::kSet, queue.done_key(task.id), 0, cancelled_record(task)});
    return PlannedChange{std::move(change), {}};
  };
  return Cancelling{{view, plan_removal}, {view, record}, std::move(locks)};
}

// The error for a task that neither waits nor runs.
Error not_there(const Queue& queue, const std::string& id) {
  const std::string what = no_task(queue, id) + " waits or runs";
  const auto letters = dead_letters_of(queue, id);
  if (letters && !letters->of_task.empty()) {
    const TaskInfo& letter = letters->of_task.back();
    const std::string& why = letter.reason.empty() ? letter.error : letter.reason;
    return {ErrorCode::kNotFound,
            fmt::format("{}: it is dead ({}); \"lictor dead purge {}\" deletes it", what,
                        printable(why), shell_argument(id))};
  }
  const auto done = queue.store.get(queue.done_key(id));
  if (done && *done) {
    const bool cancelled = view_done(queue.layout, **done).state == TaskState::kCancelled;
    return {ErrorCode::kNotFound, what + (cancelled ? ": it was cancelled" : ": it is done")};
  }
  const std::string hint = unnameable_hint(queue.layout.tasks_prefix, id);
  return {ErrorCode::kNotFound, what + "; " + (hint.empty() ? "it may be done" : hint)};
}

auto view_letters_of(const Queue& queue) {
  return [&queue](wire::KvEntry entry) { return view_dead_letter(queue.layout, std::move(entry)); };
}

// The letter is deleted and the task written by one transaction. Its conflict is a task that exists
// under the same id; the letter then stays.
Plan retry_plan(const Queue& queue, bool drop_expiry) {
  const auto change = [&queue, drop_expiry](const TaskInfo& letter) -> Result<PlannedChange> {
    PlannedChange planned;
    auto record = retried_record(letter.record, wall_now(), drop_expiry);
    if (!record) {
      return fail(record.error().code,
                  "dead letter " + printable(letter.id) + ": " + record.error().message);
    }
    const std::string& id = letter.task_id;
    if (id.empty()) {
      return fail(
          ErrorCode::kInvalid,
          fmt::format("dead letter {}: its task's key is not below {}; submit its record as "
                      "a new task, then purge it",
                      printable(letter.id), queue.layout.tasks_prefix));
    }
    const std::string key = queue.layout.task_key(id);
    planned.conflict =
        fmt::format("task {} exists in queue \"{}\", so its dead letter {} was left as it is",
                    printable(id), queue.name, printable(letter.id));
    planned.change = removal(letter.key, letter.modify_index);
    if (const std::size_t most = wire::record_limit(queue.layout, key); record->size() > most) {
      return fail(
          ErrorCode::kTooLarge,
          fmt::format("dead letter {}: its record of {} bytes is too large to be claimed (at "
                      "most {}); submit a smaller task",
                      printable(letter.id), record->size(), most));
    }
    planned.change.insert(planned.change.begin() + 1,
                          {Store::Op::Verb::kCas, key, 0, std::move(*record)});
    return planned;
  };
  return {view_letters_of(queue), change};
}

Plan purge_plan(const Queue& queue) { return {view_letters_of(queue), plan_removal}; }

Error no_letter(const Queue& queue, const std::string& id) {
  return {ErrorCode::kNotFound, fmt::format("no dead letter {} in queue \"{}\" ({})", printable(id),
                                            queue.name, queue.layout.dead_prefix)};
}

Result<TaskList> list_letters(const Queue& queue, TaskFilter filter) {
  filter.state = TaskState::kDead;
  LICTOR_TRY(auto letters, list_tasks(queue, filter));
  mark_unnameable(queue.store, letters.tasks);
  return letters;
}

// Changes all `tasks` except those whose keys below `prefix` are not UTF-8, since nobody can change
// them.
BulkResult change_all(const Queue& queue, const char* verb, const std::string& prefix,
                      std::vector<TaskInfo> tasks, const Plan& plan, const Progress& progress) {
  std::vector<BulkResult::Refusal> refused;
  std::erase_if(tasks, [&](const TaskInfo& task) {
    if (task.state != TaskState::kUnnameable) return false;
    refused.push_back(
        {task.id,
         {ErrorCode::kFailed, fmt::format("cannot {} {}: {}", verb, printable(task.id),
                                          unnameable_hint(prefix, task.id))}});
    return true;
  });
  BulkResult result = change_many(queue, std::move(tasks), plan, progress);
  std::move(refused.begin(), refused.end(), std::back_inserter(result.refused));
  return result;
}

}  // namespace

}  // namespace lictor::client

namespace lictor {

using namespace client;

namespace {

// An empty id, say from an unset variable in a script, must not name the folder key.
Result<void> check_id(const std::string& id) {
  if (!id.empty() && !id.ends_with('/')) return {};
  return fail(ErrorCode::kInvalid,
              "expected a task's id, got " + (id.empty() ? "nothing" : '"' + printable(id) + '"'));
}

}  // namespace

Result<TaskList> Client::list(const TaskFilter& filter) { return list_tasks(impl_->queue, filter); }

Result<std::vector<TaskInfo>> Client::show(const std::string& id) {
  return check_id(id).and_then([&] { return show_task(impl_->queue, id); });
}

Result<Ending> Client::wait(const std::string& id, const WaitOptions& options) {
  return check_id(id).and_then([&] { return follow(impl_->queue, id, options); });
}

Result<TaskInfo> Client::cancel(const std::string& id) {
  const client::Queue& queue = impl_->queue;
  LICTOR_TRY(const auto how, check_id(id).and_then([&] { return cancelling(queue); }));
  const std::string key = queue.layout.task_key(id);
  auto cancelled = change_one(queue, key, how.recorded);
  if (!cancelled && cancelled.error().code == ErrorCode::kPermissionDenied) {
    return change_one(queue, key, how.silent);  // a producer's token may not write below done/
  }
  if (!cancelled && cancelled.error().code == ErrorCode::kNotFound) {
    return tl::unexpected(not_there(queue, id));
  }
  if (cancelled && !keeps_history(queue, how.leader())) {
    impl_->cancel_marks.delete_later(queue.done_key(id));
  }
  return cancelled;
}

Result<BulkResult> Client::cancel_all(const TaskFilter& filter, const Progress& progress) {
  const client::Queue& queue = impl_->queue;
  if (filter.state == TaskState::kDead || filter.state == TaskState::kDone) {
    return fail(ErrorCode::kInvalid, "dead and done tasks cannot be cancelled");
  }
  LICTOR_TRY(auto listed, list_tasks(queue, filter));
  std::erase_if(listed.tasks, [](const TaskInfo& task) { return task.state >= TaskState::kDead; });
  LICTOR_TRY(const auto how, cancelling(queue));
  bool records = !listed.tasks.empty() && keeps_history(queue, how.leader());
  if (records) {
    const auto writable = queue.store.writable({queue.done_key(listed.tasks.front().id)});
    records = writable && writable->front();
  }
  return change_all(queue, "cancel", queue.layout.tasks_prefix, std::move(listed.tasks),
                    records ? how.recorded : how.silent, progress);
}

Result<TaskInfo> Client::retry(const std::string& id, bool drop_expiry) {
  const client::Queue& queue = impl_->queue;
  LICTOR_TRY(const auto letters, check_id(id).and_then([&] { return dead_letters_of(queue, id); }));
  const Plan plan = retry_plan(queue, drop_expiry);
  if (!letters.of_task.empty()) return change_one(queue, letters.of_task.back().key, plan);
  if (letters.named) return change_one(queue, letters.named->key, plan);
  return tl::unexpected(no_letter(queue, id));
}

Result<BulkResult> Client::retry_all(const TaskFilter& filter, bool drop_expiry,
                                     const Progress& progress) {
  const client::Queue& queue = impl_->queue;
  LICTOR_TRY(auto listed, list_letters(queue, filter));
  // Retries only the newest letter of each task: the others would conflict with it. change_all()
  // and the plan refuse letters that belong to no task.
  const auto is_without_task = [](const TaskInfo& letter) {
    return letter.task_id.empty() || letter.state == TaskState::kUnnameable;
  };
  std::map<std::string, std::uint64_t> newest;
  for (const TaskInfo& letter : listed.tasks) {
    if (is_without_task(letter)) continue;
    std::uint64_t& index = newest[letter.task_id];
    index = std::max(index, letter.create_index);
  }
  std::vector<TaskInfo> chosen;
  std::vector<BulkResult::Refusal> left;
  for (TaskInfo& letter : listed.tasks) {
    const std::string& task = letter.task_id;
    if (is_without_task(letter) || letter.create_index == newest[task]) {
      chosen.push_back(std::move(letter));
    } else {
      left.push_back({letter.id,
                      {ErrorCode::kConflict,
                       "task " + printable(task) + " has a newer dead letter, which was chosen"}});
    }
  }
  BulkResult result = change_all(queue, "retry", queue.layout.dead_prefix, std::move(chosen),
                                 retry_plan(queue, drop_expiry), progress);
  std::move(left.begin(), left.end(), std::back_inserter(result.refused));
  return result;
}

Result<TaskInfo> Client::purge(const std::string& id) {
  const client::Queue& queue = impl_->queue;
  auto purged = check_id(id).and_then(
      [&] { return change_one(queue, queue.layout.dead_prefix + id, purge_plan(queue)); });
  if (purged || purged.error().code != ErrorCode::kNotFound) return purged;
  return tl::unexpected(no_letter(queue, id));
}

Result<BulkResult> Client::purge_all(const TaskFilter& filter, const Progress& progress) {
  const client::Queue& queue = impl_->queue;
  LICTOR_TRY(auto listed, list_letters(queue, filter));
  return change_all(queue, "purge", queue.layout.dead_prefix, std::move(listed.tasks),
                    purge_plan(queue), progress);
}

}  // namespace lictor
