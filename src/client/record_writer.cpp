#include "client/record_writer.h"

#include <thread>
#include <utility>

#include "base/clock.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kSitOut = 30s;  // longer than an election with Consul's default timing
constexpr auto kPause = 500ms;
constexpr std::size_t kMostRecords = Store::kMaxOperations - 1;  // and a look at the one before

bool is_unavailable(const Result<Store::Created>& created) {
  return !created && created.error().code == ErrorCode::kUnavailable;
}

}  // namespace

void RecordWriter::add(Store::Record record) {
  const std::size_t bytes = Store::batch_bytes(record);
  if (!gathered_.empty() &&
      (gathered_.size() == kMostRecords || bytes_ + bytes > Store::kMaxBatchBytes)) {
    send();
  }
  if (stopped_) return;
  bytes_ += bytes;
  gathered_.push_back(std::move(record));
}

void RecordWriter::finish() {
  send();
  while (!window_.empty()) settle_oldest();
}

void RecordWriter::send() {
  if (gathered_.empty()) return;
  auto records = std::make_shared<const Records>(std::exchange(gathered_, {}));
  const std::size_t first = std::exchange(first_gathered_, first_gathered_ + records->size());
  // One that is too large for a transaction cannot look at another.
  const bool alone = std::exchange(bytes_, 0) > Store::kMaxBatchBytes;
  // Once one came too early all that follow it do, as long as there are any.
  while (!window_.empty() && (alone || window_.full() || out_of_order_)) settle_oldest();
  out_of_order_ = false;
  if (stopped_) return;
  const std::string after = window_.empty() ? std::string{} : last_key_;
  last_key_ = records->back().key;
  window_.start([this, first, records, after]() -> Sent {
    return {first, records, store_.create(*records, after)};
  });
  if (alone) settle_oldest();
}

void RecordWriter::settle_oldest() {
  Sent sent = window_.next();
  if (is_unavailable(sent.created) || (sent.created && sent.created->out_of_order)) {
    if (stopped_) return;  // it was not written
    out_of_order_ = true;
    sent.created = write_again(*sent.records, std::move(sent.created));
  }
  // Too large for Consul is only ever a single record.
  const bool stops = !sent.created && sent.created.error().code != ErrorCode::kTooLarge;
  if (stops && !stopped_) stopped_ = sent.created.error();
  settled_({sent.first, sent.records->size(), std::move(sent.created)});
}

// All before them are settled. Nothing was written yet.
Result<Store::Created> RecordWriter::write_again(const Records& records,
                                                 Result<Store::Created> first_try) {
  if (!first_try && trouble_) trouble_(first_try.error());
  const Instant until = boot_now() + kSitOut;
  if (!first_try) std::this_thread::sleep_for(kPause);
  auto created = store_.create(records);
  while (is_unavailable(created) && boot_now() < until) {
    std::this_thread::sleep_for(kPause);
    created = store_.create(records);
  }
  return created;
}

}  // namespace lictor::client
