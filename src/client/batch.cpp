#include "client/batch.h"

#include <thread>
#include <utility>

#include "base/clock.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kSitOut = 30s;  // longer than an election with Consul's default timing
constexpr auto kPause = 500ms;

}  // namespace

bool Batch::fits(const Store::Record& record) const {
  return records_.empty() || (records_.size() < Store::kMaxOperations &&
                              bytes_ + Store::batch_bytes(record) <= Store::kMaxBatchBytes);
}

void Batch::add(Store::Record record) {
  bytes_ += Store::batch_bytes(record);
  records_.push_back(std::move(record));
}

Result<Store::Created> Batch::write() {
  auto created = store_.create(records_);
  const Instant until = boot_now() + kSitOut;
  if (!created && created.error().code == ErrorCode::kUnavailable && trouble_) {
    trouble_(created.error());
  }
  while (!created && created.error().code == ErrorCode::kUnavailable && boot_now() < until) {
    std::this_thread::sleep_for(kPause);  // nothing was written
    created = store_.create(records_);
  }
  if (created) clear();
  return created;
}

void Batch::clear() {
  records_.clear();
  bytes_ = 0;
}

}  // namespace lictor::client
