#include "client/record_writer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "client/retry.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kMaxWriteTrouble = 30s;  // longer than an election with Consul's default timing

bool is_unavailable(const Result<Store::Created>& created) {
  return !created && created.error().code == ErrorCode::kUnavailable;
}

}  // namespace

RecordWriter::RecordWriter(const Queue& queue, std::function<void(const Settled&)> settled,
                           std::function<void(const Error&)> trouble, SubmitOrder order)
    : queue_(queue),
      settled_(std::move(settled)),
      trouble_(std::move(trouble)),
      in_order_(order == SubmitOrder::kAsGiven),
      pipeline_(queue_.store.transport(), at_once_) {}

void RecordWriter::add(NewRecord task) {
  Store::Record record{queue_.layout.task_key(task.id), {}};
  const std::size_t bytes = Store::batch_bytes(record.key, task.record.size());
  constexpr std::size_t kMost = Store::kMaxOperations - 1;  // and a look at the one before
  if (!gathered_.empty() && (gathered_.size() >= kMost || bytes_ + bytes > limits::kBatchBytes)) {
    send();
  }
  if (stopped_) return;
  give_time(task, gathered_.empty());
  bytes_ += bytes;
  record.value = std::move(task.record);
  gathered_.push_back(std::move(record));
}

// Tasks of one time start by CreateIndex, then by key. So a task gets the time of the one before
// only if its place is certain without a later time: in a later transaction that keeps its order,
// or by a greater key within one.
void RecordWriter::give_time(NewRecord& task, bool begins_transaction) {
  if (!task.made_time) return;
  WallTime time = std::max(task.made_time->time, last_time_);
  const bool has_place = begins_transaction ? in_order_ : task.id > last_id_;
  if (time == last_time_ && !has_place) time += 1ms;
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

// In any order, with a transaction a millisecond, 20,000 tasks are up to 317 ms ahead of the clock.
void RecordWriter::outlast_times() const {
  constexpr auto kMost = 2s;  // else the clock was set back
  const auto ahead = last_time_ - wall_now();
  if (moved_on_ && ahead >= 0ms && ahead < kMost) std::this_thread::sleep_for(ahead + 1ms);
}

void RecordWriter::send() {
  if (gathered_.empty()) return;
  Sent next{first_gathered_, std::exchange(gathered_, {}), {}};
  first_gathered_ += next.records.size();
  bytes_ = 0;
  // Limits the waiting transactions to as many as are under way.
  while (sent_.size() >= 2 * at_once_) settle_oldest();
  if (stopped_) return;
  if (in_order_ && !sent_.empty()) next.after = last_key_;
  last_key_ = next.records.back().key;
  pipeline_.add(Store::create_request(next.records, next.after));
  sent_.push_back(std::move(next));
}

// A refusal because the record before is not there yet, and a Consul that is away, say nothing
// against these records: they are written again, now that all earlier ones are settled.
void RecordWriter::settle_oldest() {
  const Pipeline::Answer answer = pipeline_.next();
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  auto created = queue_.store.create_from(answer.response, answer.at, sent.records, sent.after);
  if ((created && created->unmet) || is_unavailable(created)) {
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
    sent_.resize(sent_.size() - pipeline_.drop_unsent());
  }
  settled_({sent.first, sent.records.size(), std::move(created)});
}

// All earlier records are settled; these are not written.
Result<Store::Created> RecordWriter::write_again(const Sent& sent,
                                                 Result<Store::Created> first_try) {
  if (!first_try && trouble_) trouble_(first_try.error());
  const Patience patience{kMaxWriteTrouble};
  auto created = first_try ? queue_.store.create(sent.records) : std::move(first_try);
  while (is_unavailable(created) && patience.pause()) {
    created = queue_.store.create(sent.records);
  }
  return created;
}

}  // namespace lictor::client
