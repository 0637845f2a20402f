#include "client/change.h"

#include <deque>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/try.h"
#include "client/retry.h"

namespace lictor::client {
namespace {

constexpr int kLostReplies = 3;

Error in_doubt(const std::string& key, const Error& why) {
  return {
      ErrorCode::kTimeout,
      fmt::format("cannot tell whether {} was changed, since the reply was lost; the last error: "
                  "{}",
                  printable(key), why.message)};
}

// `sent`: the task whose change may have been applied, since the reply was lost. Every plan deletes
// the key, so a missing key then shows that the change was applied. While `sent` is set, an error
// is doubt and not a refusal.
Result<TaskInfo> change_from(const Queue& queue, const std::string& key, const Plan& plan,
                             std::optional<TaskInfo> sent) {
  int lost = 0;
  return retry_conflicts(key, [&]() -> std::optional<Result<TaskInfo>> {
    auto entry = queue.store.get(key);
    if (!entry) {
      return tl::unexpected(sent ? in_doubt(key, entry.error()) : unchanged(entry.error()));
    }
    if (!*entry) {
      if (sent) return std::move(*sent);
      return fail(ErrorCode::kNotFound, "there is no " + printable(key));
    }
    TaskInfo task = plan.view(**std::move(entry));
    LICTOR_TRY(const auto planned, plan.change(task));
    const auto applied = queue.store.apply({planned.change});
    if (applied) {
      const auto refused = applied->front();  // an operation
      if (!refused) return task;
      if (*refused != 0 && !planned.conflict.empty() && !sent) {
        return fail(ErrorCode::kConflict, planned.conflict);
      }
      return std::nullopt;  // it changed meanwhile
    }
    if (applied.error().code != ErrorCode::kTimeout) {
      return tl::unexpected(sent ? in_doubt(key, applied.error()) : applied.error());
    }
    if (++lost == kLostReplies) return tl::unexpected(applied.error());
    sent = std::move(task);
    pause_before_retry();
    return std::nullopt;
  });
}

// Batches the changes of many tasks into transactions, several of them under way. Answers are
// settled in the order of the requests; the first error of Consul that lasts stops the sending.
class Bulk {
 public:
  Bulk(const Queue& queue, const Plan& plan, const Progress& progress, std::size_t total,
       std::size_t at_once)
      : queue_(queue),
        plan_(plan),
        progress_(progress),
        total_(total),
        at_once_(at_once),
        pipeline_(queue.store.transport(), at_once) {}

  BulkResult run(std::vector<TaskInfo> tasks) {
    result_.tasks.reserve(tasks.size());
    for (TaskInfo& task : tasks) {
      if (stopped_) {
        refuse(task.id, not_tried(*stopped_));
        continue;
      }
      auto planned = plan_.change(task);
      if (!planned) {
        refuse(task.id, std::move(planned.error()));
      } else {
        add(std::move(task), std::move(planned->change));
      }
    }
    send();
    while (!sent_.empty()) settle_oldest();
    return std::move(result_);
  }

 private:
  struct Batch {
    std::vector<TaskInfo> tasks;
    std::vector<Store::Change> changes;  // of each
  };

  void add(TaskInfo task, Store::Change change) {
    const std::size_t bytes = Store::batch_bytes(change);
    if (!batch_.tasks.empty() &&
        (ops_ + change.size() > Store::kMaxOperations || bytes_ + bytes > limits::kBatchBytes)) {
      send();
    }
    if (stopped_) return refuse(task.id, not_tried(*stopped_));
    ops_ += change.size();
    bytes_ += bytes;
    batch_.tasks.push_back(std::move(task));
    batch_.changes.push_back(std::move(change));
  }

  void send() {
    if (batch_.tasks.empty()) return;
    // Limits the waiting batches to as many as are under way.
    while (sent_.size() >= 2 * at_once_) settle_oldest();
    Batch batch = std::exchange(batch_, {});
    ops_ = bytes_ = 0;
    if (stopped_) return leave(batch);
    pipeline_.add(Store::change_request(batch.changes));
    sent_.push_back(std::move(batch));
  }

  // Applied changes are done. A change that was refused, or whose reply was lost, is tried by
  // itself: that finds out why.
  void settle_oldest() {
    const Pipeline::Answer answer = pipeline_.next();
    Batch batch = std::move(sent_.front());
    sent_.pop_front();
    const auto refused = queue_.store.apply_from(answer.response, batch.changes);
    const bool lost = !refused && refused.error().code == ErrorCode::kTimeout;
    if (!refused && !lost) stop(refused.error());
    for (std::size_t i = 0; i < batch.tasks.size(); ++i) {
      TaskInfo& task = batch.tasks[i];
      if (refused && !(*refused)[i]) {
        result_.tasks.push_back(std::move(task));
      } else if (stopped_) {
        refuse(task.id, lost      ? in_doubt(task.key, *stopped_)
                        : refused ? not_tried(*stopped_)
                                  : refused.error());
      } else {  // find out why
        alone(task.key, task.id, lost ? std::optional{task} : std::nullopt);
      }
    }
    if (progress_) progress_(result_.tasks.size() + result_.refused.size(), total_);
  }

  // A task that is gone by now is no failure: another client or its leader has ended it.
  void alone(const std::string& key, const std::string& id, std::optional<TaskInfo> sent) {
    if (sent) {
      const auto seen = queue_.store.get(key);
      if (!seen) {
        stop(seen.error());
        return refuse(id, in_doubt(key, seen.error()));
      }
    }
    auto changed = change_from(queue_, key, plan_, std::move(sent));
    if (changed) {
      result_.tasks.push_back(std::move(*changed));
      return;
    }
    if (changed.error().code == ErrorCode::kNotFound) return;
    if (is_temporary(changed.error())) stop(changed.error());
    refuse(id, std::move(changed.error()));
  }

  // Requests under way are settled; the rest is not sent.
  void stop(const Error& error) {
    if (!stopped_) stopped_ = error;
    for (std::size_t unsent = pipeline_.drop_unsent(); unsent > 0; --unsent) {
      leave(sent_.back());
      sent_.pop_back();
    }
  }

  void leave(const Batch& batch) {
    for (const TaskInfo& task : batch.tasks) refuse(task.id, not_tried(*stopped_));
  }
  void refuse(const std::string& id, Error error) {
    result_.refused.push_back({id, std::move(error)});
  }

  const Queue& queue_;
  const Plan& plan_;
  const Progress& progress_;
  const std::size_t total_;
  const std::size_t at_once_;
  Batch batch_;
  std::size_t ops_ = 0;
  std::size_t bytes_ = 0;
  std::optional<Error> stopped_;
  BulkResult result_;
  std::deque<Batch> sent_;  // in the pipeline
  Pipeline pipeline_;
};

}  // namespace

Store::Change removal(const std::string& key, std::uint64_t index) {
  return {{Store::Op::Verb::kCheckIndex, key, index}, {Store::Op::Verb::kDeleteCas, key, index}};
}

Result<PlannedChange> plan_removal(const TaskInfo& task) {
  return PlannedChange{removal(task.key, task.modify_index), {}};
}

Result<TaskInfo> change_one(const Queue& queue, const std::string& key, const Plan& plan) {
  return change_from(queue, key, plan, std::nullopt);
}

Error unchanged(Error why) {
  if (why.code == ErrorCode::kTimeout) why.code = ErrorCode::kUnavailable;
  return why;
}

Error not_tried(const Error& why) { return unchanged({why.code, "not tried: " + why.message}); }

BulkResult change_many(const Queue& queue, std::vector<TaskInfo> tasks, const Plan& plan,
                       const Progress& progress, std::size_t at_once) {
  Bulk bulk{queue, plan, progress, tasks.size(), at_once};
  return bulk.run(std::move(tasks));
}

BulkResult change_each(const std::vector<std::string>& ids,
                       const std::function<Result<TaskInfo>(const std::string&)>& change) {
  BulkResult result;
  std::optional<Error> away;
  for (const std::string& id : ids) {
    auto changed = away ? tl::unexpected(not_tried(*away)) : change(id);
    if (changed) {
      result.tasks.push_back(std::move(*changed));
      continue;
    }
    if (!away && is_temporary(changed.error())) {
      away = changed.error();
      if (away->code == ErrorCode::kTimeout) away->message = "no answer came for " + id;
    }
    result.refused.push_back({id, std::move(changed.error())});
  }
  return result;
}

}  // namespace lictor::client
