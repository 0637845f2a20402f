#include "core/history.h"

#include <algorithm>
#include <utility>

namespace lictor::core {
namespace {

constexpr Duration kReadRetry = 10s;
// To find entries that others add: those of cancelled tasks, and of other hosts' partitions. A
// listing takes a hundredth of the time at most.
constexpr Duration kReadAgain = 24h;
constexpr Duration kReadShared = 1min;
constexpr int kReadPace = 100;
// Deletes are batched: entries over the limit stay up to kPause, or until kBatch of them wait.
constexpr Duration kPause = 1s;
constexpr Duration kLongestPause = 1min;
constexpr std::size_t kBatch = 32;
constexpr Duration kNextBatch = 1ms;

}  // namespace

void History::stop(Effects& out) {
  cancel(reading_, out);
  read_at_ = check_at_ = Instant::max();
  by_age_.clear();
  by_key_.clear();
  trouble_.over();
}

void History::on_time(Instant now, Effects& out) {
  if (!options_.history || now < read_at_) return;
  read_at_ = Instant::max();
  reading_ = requests_.next();
  asked_at_ = now;
  out.emplace_back(ListHistory{reading_});
}

void History::on(Instant now, const HistoryListed& listed, Effects& out) {
  if (listed.request != reading_) return;
  reading_ = {};
  if (!listed.ok) {
    read_at_ = now + std::max(kReadRetry, kReadPace * (now - asked_at_));
    trouble_.report("history", listed.error, out);
    return;
  }
  for (const HistoryListed::Entry& entry : listed.entries) {
    // This leader knows better what was finished since the listing was made.
    if (!by_key_.contains(entry.key)) add(now, entry.key, entry.modify_index, entry.at);
  }
  check_at_ = now;
  const Duration pause = options_.partitions > 1 ? kReadShared : kReadAgain;
  read_at_ = now + std::max(pause, kReadPace * (now - asked_at_));
}

void History::add(Instant now, const std::string& key, std::uint64_t index, WallTime at) {
  if (!options_.history) return;
  if (const auto it = by_key_.find(key); it != by_key_.end()) by_age_.erase(it->second);
  by_key_.insert_or_assign(key, by_age_.emplace(at, index, key).first);
  if (excess() > 0 && check_at_ != Instant::max()) check_at_ = std::min(check_at_, now + kPause);
}

std::size_t History::excess() const {
  return by_key_.size() > options_.history->keep ? by_key_.size() - options_.history->keep : 0;
}

bool History::is_old(const Entry& entry, WallTime wall) const {
  const Duration max_age = options_.history->max_age;
  return max_age > Duration::zero() && std::get<0>(entry) <= wall &&
         wall - std::get<0>(entry) > max_age;
}

std::vector<PruneOp> History::take_old(Instant now, WallTime wall, std::size_t most) {
  std::vector<PruneOp> old;
  if (reading_ || check_at_ == Instant::max()) return old;
  if (now < check_at_ && excess() < kBatch) return old;
  while (!by_age_.empty() && old.size() < most &&
         (excess() > 0 || is_old(*by_age_.begin(), wall))) {
    const auto& [at, index, key] = *by_age_.begin();
    old.push_back({key, index});
    by_key_.erase(key);
    by_age_.erase(by_age_.begin());
  }
  // Ages are checked to a hundredth of max_age.
  const Duration pause =
      std::clamp<Duration>(options_.history->max_age / 100, kPause, kLongestPause);
  check_at_ = now + (old.size() == most ? kNextBatch : excess() > 0 ? kPause : pause);
  return old;
}

Instant History::next_deadline() const {
  if (!options_.history) return Instant::max();
  // Entries are checked once the reading has ended.
  const bool waits = reading_ || by_key_.empty();
  return std::min(read_at_, waits ? Instant::max() : check_at_);
}

}  // namespace lictor::core
