#include "core/reading/version_check.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace lictor::core {
namespace {

// The time between two batches of a pass: 64 keys take Consul 0.3 ms, so a pass takes a fiftieth of
// one processor.
constexpr Duration kStep = 15ms;
// A pass over a short list must not follow each of our own writes.
constexpr Duration kLeastPass = 100ms;
// New tasks are read and claimed first.
constexpr Duration kDelay = 50ms;
// The pause at rest. Deleting the whole tree without its last slash wakes no query; this shows it.
constexpr Duration kRest = 3s;

}  // namespace

void VersionCheck::start(Instant now, std::uint64_t index) {
  running_ = true;
  seen_ = index;
  next_at_ = now + kRest;
}

void VersionCheck::stop(Effects& out) {
  cancel(request_, out);
  running_ = passing_ = false;
  index_ = seen_ = 0;
  pass_began_ = Instant::min();
  next_at_ = kNever;
}

void VersionCheck::listed(Instant now, std::uint64_t index) {
  index_ = index;
  if (!moved_on()) return;
  const Instant soonest = passing_ ? now : std::max(now, pass_began_ + kLeastPass);
  next_at_ = std::min(next_at_, std::max(soonest, now + kDelay));
}

void VersionCheck::doubt_all(Instant now) {
  seen_ = 0;
  passing_ = false;
  pass_index_ = 0;  // the answer under way shows nothing
  listed(now, index_);
}

void VersionCheck::on_time(Instant now, const std::function<bool(const TaskEntry&)>& is_stable,
                           Effects& out) {
  if (!running_ || request_ || now < next_at_) return;
  if (!std::exchange(passing_, true)) {
    cursor_.clear();
    pass_began_ = now;
    pass_index_ = index_;
  }
  CheckTasks check{{}, {}};
  std::size_t bytes = 0;  // of keys, which may be long
  const auto is_full = [&] {
    return check.versions.size() >= options_.max_operations ||
           bytes >= limits::kTransactionBytes / 8;
  };
  auto next = keys_.upper_bound(cursor_);
  for (; next != keys_.end() && !is_full(); ++next) {
    const TaskEntry& known = **next;
    if (known.index == 0 || !is_stable(known)) continue;
    check.versions.push_back({known.key, known.index});
    bytes += known.key.size();
  }
  if (check.versions.empty()) return end_pass(now);
  asks_last_ = next == keys_.end();
  check.request = request_ = requests_.next();
  asked_ = check.versions;
  out.emplace_back(std::move(check));
}

void VersionCheck::end_pass(Instant now) {
  passing_ = false;
  seen_ = std::max(seen_, pass_index_);
  next_at_ = moved_on() ? std::max(now + kStep, pass_began_ + kLeastPass) : now + kRest;
}

std::uint64_t VersionCheck::asked(const std::string& key) const {
  const auto version = std::ranges::find(asked_, key, &CheckTasks::Version::key);
  return version == asked_.end() ? 0 : version->index;
}

bool VersionCheck::accept(Instant now, const TasksChecked& reply) {
  if (!request_ || reply.request != request_) return false;
  request_ = {};
  if (!reply.ok) {
    const bool asks_less = reply.most_operations != 0;  // Queue has learned the limit
    next_at_ = asks_less ? now : now + (reply.denied ? kRefusedPause : kRest);
    return false;
  }
  cursor_ = asked_.back().key;
  next_at_ = now + (moved_on() ? kStep : kRest);
  if (asks_last_) end_pass(now);
  return true;
}

}  // namespace lictor::core
