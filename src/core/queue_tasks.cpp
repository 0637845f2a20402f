// What the store says of tasks.

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/mutant.h"
#include "core/queue.h"

namespace lictor::core {
namespace {

// Greater than every key: they are UTF-8, or are shown as if they were.
constexpr std::string_view kAfterAll = "\xff";
// More types than anybody would look up in a log.
constexpr std::size_t kMostTypesTold = 1000;

const std::string& key_of_record(const StoredRecord& record) {
  return std::visit([](const auto& r) -> const std::string& { return r.key; }, record);
}

std::uint64_t index_of_record(const StoredRecord& record) {
  return std::visit([](const auto& r) { return r.modify_index; }, record);
}

}  // namespace

const TypePolicy* Queue::policy_of(const Task& task) const {
  if (const auto it = options_.types.find(task.type); it != options_.types.end()) {
    return &it->second;
  }
  return options_.any_type ? &*options_.any_type : nullptr;
}

// The name that its executor has in the configuration.
std::string_view Queue::executor_of(const Task& task) const {
  return options_.types.contains(task.type) ? std::string_view{task.type} : "*";
}

void Queue::take_in(Instant now, const StoredRecord& record, Effects& out) {
  const std::string& key = key_of_record(record);
  const std::uint64_t index = index_of_record(record);

  if (Attempt* attempt = attempts_.find(key)) {
    // While it is ours our own writes settle what it is. Only a version that comes after the one
    // we are just removing would be missed.
    if (attempt->state == Attempt::State::kSettling && index > attempt->task->modify_index) {
      attempt->look_again = true;
    }
    if (attempt->state != Attempt::State::kHeld || index <= attempt->task->modify_index) return;
    // Rewritten while it was claimed ahead: what was never started is claimed anew, as it is now.
    abandon_claim(attempt->task->stamp.claim->nonce);
    end_attempt(*attempt);
  }
  if (tombstones_.covers(key, index) && !mutant(Mutant::kNoTombstone)) return;
  if (const auto it = left_alone_.find(key); it != left_alone_.end()) {
    if (index <= it->second.index) return;
    left_alone_.erase(it);
  }
  if (const auto it = burying_.find(key); it != burying_.end()) return;
  std::visit([&](const auto& r) { take_in(now, r, out); }, record);
}

void Queue::take_in(Instant now, const Task& task, Effects& out) {
  if (mutant(Mutant::kForgetOrphan) && task.stamp.taken) return;
  const auto known = schedule_.version(task.key);
  if (known && *known >= task.modify_index) return;
  if (std::string why = commits_.too_large(task); !why.empty()) {
    forget(task.key);
    return leave_too_large(task.key, task.modify_index, std::move(why), out);
  }
  const TypePolicy* policy = policy_of(task);
  if (policy == nullptr && !told_no_executor_.contains(task.type)) {
    // Producers name the types, without end if they like: rather tell one twice than keep them all.
    if (told_no_executor_.size() >= kMostTypesTold) told_no_executor_.clear();
    told_no_executor_.insert(task.type);
    out.emplace_back(Fact{Fact::Kind::kNoExecutor, task.key, 0, 0, task.type, {}});
  }
  if (known.value_or(0) != 0) {
    out.emplace_back(Fact{Fact::Kind::kChanged, task.key, 0, 0, {}, {}});
  }
  if (!known) ++new_tasks_;
  refused_.erase(task.key);  // what it is now was not refused yet
  if (is_distant(now, task)) {
    schedule_.put_distant(task, *due_of(task));
    return;
  }
  auto taken = std::make_shared<Task>(task);
  correct_retry(now, *taken);
  schedule_.put(std::move(taken), policy != nullptr, options_.serialize_retries);
}

// Claimed, it could not be ended in one fenced transaction.
void Queue::leave_too_large(const std::string& key, std::uint64_t index, std::string why,
                            Effects& out) {
  out.emplace_back(Fact{Fact::Kind::kTooLarge, key, 0, 0, why, {}});
  left_alone_[key] = {index, Reason::Kind::kTooLarge, std::move(why)};
}

// Of a hundred thousand tasks for tomorrow each would take a kilobyte.
bool Queue::is_distant(Instant now, const Task& task) const {
  const auto due = due_of(task);
  if (!due || !listing_.by_name() || policy_of(task) == nullptr) return false;
  const bool expires_first = task.expire_at && *task.expire_at < *due;
  return !expires_first && task.stamp == Stamp{} && *due > wall(now) + distance(2);
}

std::chrono::milliseconds Queue::distance(int times) const {
  return std::chrono::ceil<std::chrono::milliseconds>(options_.preload + times * options_.distance);
}

// Many at once: each time takes a reading of all the names.
void Queue::read_distant(Instant now, Effects& out) {
  const auto next = schedule_.next_distant();
  if (!next || *next > wall(now) + distance(1)) return;
  if (!schedule_.forget_distant(wall(now) + distance(2))) return;
  listing_.ask_anew(now, out);
}

// A retry further ahead than any that lictor sets was set by a clock that went wrong, and has been
// put right since: it is due.
bool Queue::correct_retry(Instant now, Task& task) const {
  const TypePolicy* policy = policy_of(task);
  Duration most = kLongestRetryAfter;
  if (task.backoff) most = std::max(most, task.backoff->max);
  if (policy != nullptr) most = std::max(most, policy->backoff.max);
  const WallTime limit = wall(now) + std::chrono::ceil<std::chrono::milliseconds>(most);
  if (!task.stamp.retry_at || *task.stamp.retry_at <= limit) return false;
  task.stamp.retry_at = wall(now);
  return true;
}

void Queue::correct_retries(Instant now) {
  std::vector<std::shared_ptr<const Task>> corrected;
  schedule_.for_each([&](const Task& task) {
    if (!task.stamp.retry_at) return;
    auto copy = std::make_shared<Task>(task);
    if (correct_retry(now, *copy)) corrected.push_back(std::move(copy));
  });
  for (auto& task : corrected) put(std::move(task));
}

// It does not wait any more, and is not ours.
void Queue::forget(const std::string& key) {
  schedule_.remove(key);
  refused_.erase(key);
}

void Queue::put(std::shared_ptr<const Task> task) {
  const bool startable = policy_of(*task) != nullptr;
  schedule_.put(std::move(task), startable, options_.serialize_retries);
}

void Queue::take_in(Instant now, const BadRecord& record, Effects& out) {
  const auto known = schedule_.version(record.key);
  if (known && *known >= record.modify_index) return;  // an answer that came late
  forget(record.key);
  if (std::string why = commits_.too_large(record); !why.empty()) {
    return leave_too_large(record.key, record.modify_index, std::move(why), out);
  }
  burying_[record.key] = record.modify_index;
  BuryOp op;
  op.key = record.key;
  op.index = record.modify_index;
  op.record = record.record;
  op.readable = false;
  op.reason = "unreadable";
  op.error = record.error;
  op.at = wall(now);
  commits_.add(now, {Purpose::kBury, std::move(op), {}});
}

void Queue::on(Instant now, const TasksListed& event, Effects& out) {
  Instant emitted{};
  const Listing::Use use = listing_.accept(now, event, emitted, out);
  if (use == Listing::Use::kNone) return;
  if (use == Listing::Use::kFirst) return mark_folder(now, event.marker);
  // Answers to what was asked after a delete was acknowledged cannot show the deleted task; those
  // to what was asked before may still be on their way.
  const Instant oldest = std::min(emitted, listing_.oldest_request());
  tombstones_.forget_before(oldest);
  new_tasks_ = 0;
  for (const StoredRecord& record : event.records) take_in(now, record, out);
  if (event.full) tell_folders(event, use == Listing::Use::kAll, out);
  if (use == Listing::Use::kPart) return;
  Names of_records;
  for (const StoredRecord& record : event.records) of_records.push_back(key_of_record(record));
  put_in_order(of_records);
  compare(now, event.full ? of_records : event.keys.in_order(), event, out);
  listing_.brought(now, new_tasks_);
  mark_folder(now, event.marker);
}

void Queue::mark_folder(Instant now, bool is_there) {
  if (is_there) {
    marking_folder_ = false;
  } else if (!std::exchange(marking_folder_, true)) {
    commits_.add(now, {Purpose::kMark, MarkOp{MarkOp::What::kTasksFolder}, {}});
  }
}

// A folder is left alone; who meant it for a task is to learn of it, once.
void Queue::tell_folders(const TasksListed& listed, bool all, Effects& out) {
  std::set<std::string> folders{listed.folders.begin(), listed.folders.end()};
  for (const std::string& key : folders) {
    if (!told_folders_.contains(key)) {
      out.emplace_back(Fact{Fact::Kind::kInFolder, key, 0, 0, {}, {}});
    }
  }
  if (all) told_folders_.clear();
  told_folders_.merge(folders);
}

// In Consul's JSON every byte of a key that is not UTF-8 reads U+FFFD, which names another key:
// none. True: so it is with `key`, which was listed with `index` and is not there.
bool Queue::leave_if_unnameable(const std::string& key, std::uint64_t index, Effects& out) {
  if (key.find("\xef\xbf\xbd") == std::string::npos) return false;
  left_alone_[key] = {index, Reason::Kind::kUnnameable, {}};
  out.emplace_back(Fact{Fact::Kind::kUnnameable, key, 0, 0, {}, {}});
  return true;
}

// Of a hundred thousand names all but a few are of what waits: those are told by their hashes, and
// if they are as many as wait, none is gone. Else the names and what waits are walked together, in
// order; nobody is told of the distant tasks that are gone, of which not even the keys are known.
//
// A key that we know from before the listing and that the listing does not show is gone. One whose
// ModifyIndex is above the listing's index is newer than the listing, and says nothing. Nor does a
// listing without the folder key: it is what a token sees that may not read the tasks. If the key
// was deleted, it is made again, and the next listing tells.
void Queue::compare(Instant now, const Names& listed, const TasksListed& event, Effects& out) {
  std::vector<std::string> gone;
  std::vector<Attempt*> mine;
  std::vector<Attempt*> withdrawn;
  mine.reserve(attempts_.size());
  attempts_.for_each([&](Attempt& attempt) { mine.push_back(&attempt); });
  auto attempt = mine.begin();
  const auto is_old = [&](const Task& task) {
    return event.marker && task.modify_index <= event.consul_index;
  };
  const auto pass_mine_before = [&](std::string_view name) {
    for (; attempt != mine.end() && (*attempt)->task->key < name; ++attempt) {
      const auto state = (*attempt)->state;
      const bool settled_by_us =
          state == Attempt::State::kSettling || state == Attempt::State::kClaiming;
      if (!settled_by_us && is_old(*(*attempt)->task)) withdrawn.push_back(*attempt);
    }
  };
  const auto pass_name = [&](std::string_view name) {  // that does not wait
    pass_mine_before(name);
    if (attempt != mine.end() && (*attempt)->task->key == name) {
      // Our delete may be under way; a task written anew under this name would not show.
      if (!event.full && (*attempt)->state == Attempt::State::kSettling) {
        listing_.doubt(now, name);
      }
      ++attempt;
    } else if (!event.full && tombstones_.has(name)) {
      listing_.doubt(now, name);  // the same
    } else if (!event.full && !burying_.contains(name) && !left_alone_.contains(name)) {
      ++new_tasks_;
      listing_.fetch(std::string{name});
    }
  };
  const Names others = schedule_.others(listed);
  for (const std::string_view name : others) pass_name(name);
  pass_mine_before(kAfterAll);
  if (listed.size() - others.size() != schedule_.size()) {
    auto name = listed.begin();
    schedule_.for_each([&](const Task& task) {
      while (name != listed.end() && *name < task.key) ++name;
      if (name != listed.end() && *name == task.key) return;
      if (is_old(task)) gone.push_back(task.key);
    });
    if (event.marker) schedule_.forget_distant_others(listed, event.consul_index);
  }
  for (const std::string& key : gone) {
    forget(key);
    out.emplace_back(Fact{Fact::Kind::kWithdrawn, key, 0, 0, {}, {}});
  }
  for (Attempt* each : withdrawn) withdraw(now, *each, out);
  std::erase_if(left_alone_, [&](const auto& entry) {
    return event.marker && entry.second.index <= event.consul_index &&
           !std::binary_search(listed.begin(), listed.end(), std::string_view{entry.first});
  });
}

// Its key was deleted by somebody: the task is withdrawn, and its job is stopped.
void Queue::withdraw(Instant now, Attempt& attempt, Effects& out) {
  if (mutant(Mutant::kIgnoreWithdrawal)) return;
  if (attempt.state == Attempt::State::kHeld) {
    out.emplace_back(Fact{Fact::Kind::kWithdrawn,
                          attempt.task->key,
                          attempt.task->stamp.attempt,
                          attempt.token,
                          {},
                          {}});
    end_attempt(attempt);
    return;
  }
  if (attempt.stop != Attempt::StopReason::kWithdrawn) {
    stop_running(now, attempt, Attempt::StopReason::kWithdrawn, out);
  }
}

}  // namespace lictor::core
