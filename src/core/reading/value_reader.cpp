#include "core/reading/value_reader.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace lictor::core {
namespace {

// Batches in flight, so that a long list is read as fast as Consul can; only for small values.
constexpr std::size_t kMaxBatches = 4;
constexpr std::size_t kManyKeys = 32;

}  // namespace

void ValueReader::stop(Effects& out) {
  for (const auto& [request, batch] : in_flight_) out.emplace_back(CancelRequest{request});
  in_flight_.clear();
  in_order_ = at_ = 0;
  names_ = {};
  keys_ = {};
  again_.clear();
  next_.clear();
  waiting_.clear();
  hidden_.clear();
  hidden_until_ = Instant::max();
  not_before_ = Instant::min();
  size_.reset();
}

void ValueReader::begin(KeyList names, std::vector<std::string_view> keys) {
  LICTOR_ASSERT(!is_open());
  names_ = std::move(names);
  keys_ = std::move(keys);
  at_ = 0;
  again_ = std::exchange(waiting_, {});
}

bool ValueReader::will_read(const std::string& key) const {
  const auto from = keys_.begin() + static_cast<std::ptrdiff_t>(at_);
  return next_.contains(key) || again_.contains(key) || waiting_.contains(key) ||
         std::binary_search(from, keys_.end(), std::string_view{key}) ||
         std::any_of(in_flight_.begin(), in_flight_.end(), [&](const auto& entry) {
           const auto& keys = entry.second.keys;
           return std::find(keys.begin(), keys.end(), key) != keys.end();
         });
}

bool ValueReader::may_send() const {
  const bool any = !next_.empty() || !again_.empty() || at_ < keys_.size();
  return any && in_flight_.size() < (size_.keys() >= kManyKeys ? kMaxBatches : 1);
}

ValueReader::Batch ValueReader::next_batch() {
  const std::size_t most = size_.keys();
  Batch batch;
  const auto take_from = [&](std::set<std::string>& keys) {
    while (!keys.empty() && batch.keys.size() < most) {
      batch.keys.push_back(std::move(keys.extract(keys.begin()).value()));
    }
  };
  take_from(next_);
  if (!batch.keys.empty()) return batch;
  batch.in_order = true;
  take_from(again_);
  while (at_ < keys_.size() && batch.keys.size() < most) batch.keys.emplace_back(keys_[at_++]);
  if (at_ == keys_.size()) names_ = {}, keys_ = {}, at_ = 0;
  return batch;
}

void ValueReader::send(Instant now, Effects& out) {
  if (!hidden_.empty() && now >= hidden_until_) next_.merge(std::exchange(hidden_, {}));
  if (now < not_before_) return;
  while (may_send()) {
    Batch batch = next_batch();
    batch.asked_at = now;
    if (batch.in_order) ++in_order_;
    FetchTasks fetch{requests_.next(), batch.keys};
    in_flight_.emplace(fetch.request, std::move(batch));
    out.emplace_back(std::move(fetch));
  }
}

void ValueReader::put_back(const Batch& batch, std::string key) {
  (batch.in_order ? again_ : next_).insert(std::move(key));
}

ValueReader::Use ValueReader::accept(Instant now, const TasksFetched& reply) {
  auto node = in_flight_.extract(reply.request);
  if (node.empty()) return Use::kNone;
  Batch& batch = node.mapped();
  if (batch.in_order) --in_order_;
  if (!reply.ok) {
    for (std::string& key : batch.keys) put_back(batch, std::move(key));
    if (batch.keys.size() > options_.max_operations) return Use::kNone;  // Queue knows the limit
    size_.failed(batch.keys.size());
    not_before_ = now + kRetryPause;
    return Use::kFailed;
  }
  size_.answered(batch.keys.size(), reply.bytes, now - batch.asked_at);
  std::set<std::string_view> read{reply.missing.begin(), reply.missing.end()};
  read.insert(reply.folders.begin(), reply.folders.end());
  for (const StoredRecord& record : reply.records) read.insert(key_of(record));
  for (std::string& key : batch.keys) {
    if (read.contains(key)) continue;
    // An answer that misses a key says nothing about the others. Any other answer has everything
    // that the token may read; asking for the rest at once would be in vain.
    if (!reply.missing.empty()) {
      put_back(batch, std::move(key));
    } else {
      if (hidden_.empty()) hidden_until_ = now + kRefusedPause;
      hidden_.insert(std::move(key));
    }
  }
  return batch.in_order ? Use::kInOrder : Use::kNext;
}

Instant ValueReader::oldest_request() const {
  Instant oldest = Instant::max();
  for (const auto& [request, batch] : in_flight_) oldest = std::min(oldest, batch.asked_at);
  return oldest;
}

Instant ValueReader::next_deadline() const {
  Instant next = hidden_.empty() ? Instant::max() : hidden_until_;
  if (may_send()) next = std::min(next, not_before_);
  return next;
}

}  // namespace lictor::core
