#include "client/change.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/printable.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr int kTries = 20;  // a task changes a few times in its life, not all the time
constexpr auto kPause = 500ms;
constexpr int kLostReplies = 3;

wire::KvEntry entry_of(const TaskInfo& task) {
  wire::KvEntry entry;
  entry.key = task.key;
  entry.value = task.record;
  entry.create_index = task.create_index;
  entry.modify_index = task.modify_index;
  return entry;
}

// Nothing: applied; else which operation was refused.
Result<std::optional<std::size_t>> apply(const Queue& queue, const PlannedChange& planned) {
  if (planned.before) {
    const auto created = queue.store.create({*planned.before});
    if (!created) return tl::unexpected(created.error());
    if (!created->existing.empty()) return std::optional<std::size_t>{1};
  }
  const auto refused = queue.store.apply({planned.change});
  if (!refused) return tl::unexpected(refused.error());
  return refused->front();
}

// Goes through the tasks, a transaction's worth at a time.
class Bulk {
 public:
  Bulk(const Queue& queue, const Plan& plan, const Progress& progress, std::size_t total,
       std::size_t at_once)
      : queue_(queue), plan_(plan), progress_(progress), total_(total), window_(at_once) {}

  BulkResult run(std::vector<TaskInfo> tasks) {
    for (TaskInfo& task : tasks) {
      if (stopped_) {
        refuse(task.id, *stopped_);
        continue;
      }
      auto planned = plan_(entry_of(task));
      if (!planned) {
        refuse(task.id, std::move(planned.error()));
      } else if (planned->before) {
        alone(task.key, task.id);
      } else {
        add(std::move(*planned));
      }
    }
    send();
    while (!window_.empty()) settle_oldest();
    return std::move(result_);
  }

 private:
  struct Sent {
    std::vector<PlannedChange> batch;
    Result<std::vector<std::optional<std::size_t>>> refused{};
  };

  void add(PlannedChange planned) {
    const std::size_t bytes = Store::batch_bytes(planned.change);
    if (!batch_.empty() && (ops_ + planned.change.size() > Store::kMaxOperations ||
                            bytes_ + bytes > Store::kMaxBatchBytes)) {
      send();
    }
    if (stopped_) return refuse(planned.task.id, *stopped_);
    ops_ += planned.change.size();
    bytes_ += bytes;
    batch_.push_back(std::move(planned));
  }

  void send() {
    if (batch_.empty()) return;
    while (window_.full()) settle_oldest();
    if (stopped_) {
      for (const PlannedChange& planned : batch_) refuse(planned.task.id, *stopped_);
    } else {
      auto batch = std::make_shared<std::vector<PlannedChange>>(std::move(batch_));
      window_.start([this, batch] {
        std::vector<Store::Change> changes;
        for (PlannedChange& planned : *batch) changes.push_back(std::move(planned.change));
        return Sent{std::move(*batch), queue_.store.apply(changes)};
      });
    }
    batch_.clear();
    ops_ = bytes_ = 0;
  }

  void settle_oldest() {
    Sent sent = window_.next();
    const auto& refused = sent.refused;
    const bool lost = !refused && refused.error().code == ErrorCode::kTimeout;
    if (!refused && !lost && !stopped_) stopped_ = refused.error();
    for (std::size_t i = 0; i < sent.batch.size(); ++i) {
      TaskInfo& task = sent.batch[i].task;
      if (refused && !(*refused)[i]) {
        result_.tasks.push_back(std::move(task));
      } else if (stopped_) {
        refuse(task.id, *stopped_);
      } else {
        alone(task.key, task.id, lost ? &task : nullptr);  // finds out what is the matter
      }
    }
    if (progress_) progress_(result_.tasks.size() + result_.refused.size(), total_);
  }

  // `sent`: the change may have been applied already; then it is gone.
  void alone(const std::string& key, const std::string& id, TaskInfo* sent = nullptr) {
    auto changed = change_one(queue_, key, plan_);
    if (changed) {
      result_.tasks.push_back(std::move(*changed));
    } else if (sent != nullptr && changed.error().code == ErrorCode::kNotFound) {
      result_.tasks.push_back(std::move(*sent));
    } else {
      const ErrorCode code = changed.error().code;
      if (code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout)
        stopped_ = changed.error();
      refuse(id, std::move(changed.error()));
    }
  }

  void refuse(const std::string& id, Error error) {
    result_.refused.push_back({id, std::move(error)});
  }

  const Queue& queue_;
  const Plan& plan_;
  const Progress& progress_;
  const std::size_t total_;
  std::vector<PlannedChange> batch_;
  std::size_t ops_ = 0;
  std::size_t bytes_ = 0;
  std::optional<Error> stopped_;
  BulkResult result_;
  Window<Sent> window_;
};

}  // namespace

Store::Change removal(const std::string& key, std::uint64_t index) {
  return {{Store::Op::Verb::kCheckIndex, key, index}, {Store::Op::Verb::kDeleteCas, key, index}};
}

Result<TaskInfo> change_one(const Queue& queue, const std::string& key, const Plan& plan) {
  std::optional<TaskInfo> sent;  // a change of it may have been applied: its reply was lost
  int lost = 0;
  for (int i = 0; i < kTries; ++i) {
    auto entry = queue.store.get(key);
    if (!entry && sent) {
      entry.error().message =
          "cannot tell whether " + printable(key) +
          " was changed, since the reply to that was lost: " + entry.error().message;
    }
    if (!entry) return tl::unexpected(std::move(entry.error()));
    if (!*entry) {
      if (sent) return std::move(*sent);
      return fail(ErrorCode::kNotFound, "there is no " + printable(key));
    }
    auto planned = plan(**std::move(entry));
    if (!planned) return tl::unexpected(std::move(planned.error()));
    const auto refused = apply(queue, *planned);
    if (refused && !*refused) return std::move(planned->task);
    if (refused && **refused != 0 && !planned->conflict.empty() && !sent) {
      return fail(ErrorCode::kConflict, planned->conflict);
    }
    if (refused) continue;  // it changed meanwhile
    if (refused.error().code != ErrorCode::kTimeout || ++lost == kLostReplies) {
      return tl::unexpected(refused.error());
    }
    sent = std::move(planned->task);
    std::this_thread::sleep_for(kPause);
  }
  return fail(ErrorCode::kConflict,
              printable(key) + " changed " + std::to_string(kTries) + " times in a row; try again");
}

BulkResult change_many(const Queue& queue, std::vector<TaskInfo> tasks, const Plan& plan,
                       const Progress& progress, std::size_t at_once) {
  return Bulk{queue, plan, progress, tasks.size(), at_once}.run(std::move(tasks));
}

}  // namespace lictor::client
