#include "client/record_writer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "client/control.h"
#include "client/locks.h"
#include "client/retry.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kMaxWriteTrouble = 30s;  // longer than an election with Consul's default timing

bool is_unavailable(const Result<Store::Created>& created) {
  return !created && created.error().code == ErrorCode::kUnavailable;
}

// While this condition holds, no tasks of the queue are started: nobody leads, or it is paused. One
// condition cannot hold for the locks of several partitions. std::nullopt if tasks may start,
// or that is unknown.
std::optional<Store::Condition> at_rest(const Queue& queue) {
  const auto unchanged = [](const std::string& key, const std::optional<wire::KvEntry>& entry) {
    return Store::Condition{key, entry ? entry->modify_index : 0};
  };
  const auto count = read_partition_count(queue.store, queue.layout);
  if (!count) return std::nullopt;
  if (*count == 1) {
    const auto leader = queue.store.get(queue.layout.leader_key);
    if (!leader) return std::nullopt;
    if (!*leader) {
      // A leader makes the tasks' folder, so with a folder the leader key must be elsewhere.
      const auto folder = queue.store.get(queue.layout.tasks_prefix);
      if (!folder || *folder) return std::nullopt;
    }
    if (!*leader || (*leader)->session.empty()) return unchanged(queue.layout.leader_key, *leader);
  }
  const auto control = queue.store.get(queue.layout.control_key);
  if (!control || !*control || !read_pause((*control)->value).paused) return std::nullopt;
  return unchanged(queue.layout.control_key, *control);
}

}  // namespace

RecordWriter::RecordWriter(const Queue& queue, std::function<void(const Settled&)> settled,
                           std::function<void(const Error&)> trouble, SubmitOrder order)
    : queue_(queue),
      settled_(std::move(settled)),
      trouble_(std::move(trouble)),
      with_leader_(order == SubmitOrder::kAny ? Pace::kAnyOrder : Pace::kInOrder) {
  go_on(Pace::kUnknown);
}

// The pipeline must be empty.
void RecordWriter::go_on(Pace pace) {
  pace_ = pace;
  const bool in_order = pace == Pace::kUnknown || pace == Pace::kInOrder;
  at_once_ = in_order ? kInOrder : kInAnyOrder;
  pipeline_ = std::make_unique<Pipeline>(queue_.store.transport(), at_once_, in_order);
}

// Called when there is more than one transaction to send.
void RecordWriter::find_pace() {
  const auto rest = at_rest(queue_);
  if (rest) rest_ = *rest;
  go_on(rest ? Pace::kAtRest : with_leader_);
}

void RecordWriter::add(NewRecord task) {
  Store::Record record{queue_.layout.task_key(task.id), {}};
  const std::size_t bytes = Store::batch_bytes(record.key, task.record.size());
  const std::size_t most = queue_.store.max_operations() - 1;  // and a look at the one before
  if (!gathered_.empty() && (gathered_.size() >= most || bytes_ + bytes > limits::kBatchBytes)) {
    if (pace_ == Pace::kUnknown) find_pace();
    send();
  }
  if (stopped_) return;
  give_time(task, gathered_.empty());
  bytes_ += bytes;
  earliest_ = std::min(earliest_, task.place);
  latest_added_ = std::max(latest_added_, task.place);
  record.value = std::move(task.record);
  gathered_.push_back(std::move(record));
}

void RecordWriter::give_time(NewRecord& task, bool begins_transaction) {
  if (!task.made_time) return;
  WallTime time = std::max(task.made_time->time, last_time_);
  if (time == last_time_ && (begins_transaction || task.id <= last_id_)) time += 1ms;
  moved_on_ = time != task.made_time->time;
  if (moved_on_) task.restamp(time);
  last_time_ = time;
  last_id_ = task.id;
}

void RecordWriter::finish() {
  send();
  while (!sent_.empty()) settle_oldest();
  outlast_times();
}

// With a transaction a millisecond, 20,000 tasks are up to 317 ms ahead of the clock.
void RecordWriter::outlast_times() const {
  constexpr auto kMost = 2s;  // else the clock was set back
  const auto ahead = last_time_ - wall_now();
  if (moved_on_ && ahead >= 0ms && ahead < kMost) std::this_thread::sleep_for(ahead + 1ms);
}

void RecordWriter::send() {
  if (gathered_.empty()) return;
  Sent next{first_gathered_, std::exchange(gathered_, {}), {}};
  first_gathered_ += next.records.size();
  const bool grows = std::exchange(earliest_, WallTime::max()) > latest_sent_;
  latest_sent_ = latest_added_;
  bytes_ = 0;
  // At most as many wait as are under way.
  while (sent_.size() >= 2 * at_once_) settle_oldest();
  const bool needs_order = with_leader_ == Pace::kInOrder;
  if (pace_ == Pace::kAtRest && (rest_is_over_ || (needs_order && !grows))) {
    while (!sent_.empty()) settle_oldest();
    go_on(with_leader_);
  }
  if (stopped_) return;
  if (pace_ == Pace::kAtRest) {
    next.condition = rest_;
  } else if (pace_ == Pace::kInOrder && !sent_.empty()) {
    next.condition.key = last_key_;
  }
  last_key_ = next.records.back().key;
  pipeline_->add(Store::create_request(next.records, next.condition));
  sent_.push_back(std::move(next));
}

void RecordWriter::settle_oldest() {
  const Pipeline::Answer answer = pipeline_->next();
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  auto created = queue_.store.create_from(answer.response, answer.at, sent.records, sent.condition);
  const bool unmet = created && created->unmet;
  if (unmet && pace_ == Pace::kAtRest) rest_is_over_ = true;
  if (unmet || is_unavailable(created)) {
    if (stopped_) return;  // it was not written
    created = write_again(sent, std::move(created));
  }
  settle(sent, std::move(created));
}

void RecordWriter::settle(const Sent& sent, Result<Store::Created> created) {
  // kTooLarge concerns a single record.
  const bool stops = !created && created.error().code != ErrorCode::kTooLarge;
  if (stops && !stopped_) {
    stopped_ = created.error();
    sent_.resize(sent_.size() - pipeline_->drop_unsent());
  }
  settled_({sent.first, sent.records.size(), std::move(created)});
}

// All earlier records are settled; these are not written.
Result<Store::Created> RecordWriter::write_again(const Sent& sent,
                                                 Result<Store::Created> first_try) {
  if (!first_try && trouble_) trouble_(first_try.error());
  const Patience patience{kMaxWriteTrouble};
  auto created = first_try ? write(sent) : std::move(first_try);
  while (is_unavailable(created) && patience.pause()) created = write(sent);
  return created;
}

// With the condition of a queue at rest, a lost reply leaves no doubt, so keep it while it holds.
Result<Store::Created> RecordWriter::write(const Sent& sent) {
  if (sent.condition.index && !rest_is_over_) {
    const http::Response response =
        queue_.store.transport().perform(Store::create_request(sent.records, sent.condition));
    auto created = queue_.store.create_from(response, boot_now(), sent.records, sent.condition);
    if (!created || !created->unmet) return created;
    rest_is_over_ = true;
  }
  return queue_.store.create(sent.records);
}

}  // namespace lictor::client
