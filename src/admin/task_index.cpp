#include "admin/task_index.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"

namespace lictor::admin {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFresh = 1s;         // for a queue that is listed in no time
constexpr Duration kFreshAsked = 50ms;  // likewise, after a change
constexpr int kPace = 50;

}  // namespace

Result<TaskListingPtr> TaskIndex::get(WallTime newer_than) {
  const Instant asked_at = boot_now();
  const std::lock_guard lock{mutex_};
  used_at_ = boot_now();
  // Callers that waited for the same reading share its error: a silent Consul delays each once.
  if (failure_ && failed_at_ >= asked_at) return tl::unexpected(*failure_);
  failure_.reset();
  if (newest_) {
    const Duration fresh = newest_->at < newer_than ? kFreshAsked : kFresh;
    if (used_at_ - listed_at_ < std::max(fresh, newest_->took * kPace)) return newest_;
  }
  auto listing = std::make_shared<TaskListing>();
  listing->at = wall_now();
  TaskFilter filter;
  if (done_) filter.state = TaskState::kDone;
  auto listed = client::list_tasks(queue_, filter);
  if (!listed) {
    failure_ = listed.error();
    failed_at_ = boot_now();
    return tl::unexpected(std::move(listed.error()));
  }
  for (TaskInfo& task : listed->tasks) {
    std::string{}.swap(task.record);
    std::string{}.swap(task.output_tail);
    std::string{}.swap(task.result);
  }
  listing->tasks = std::move(listed->tasks);
  listing->hidden = std::move(listed->hidden);
  listed_at_ = boot_now();
  listing->took = listed_at_ - used_at_;
  static std::atomic<std::uint64_t> made = 0;
  listing->number = ++made;
  newest_ = std::move(listing);
  return newest_;
}

bool TaskIndex::wants_check() {
  const std::lock_guard lock{mutex_};
  const Instant now = boot_now();
  if (check_asked_at_ != Instant::min() && now - check_asked_at_ < 10s) return false;
  check_asked_at_ = now;
  return true;
}

bool TaskIndex::drop_unused() {
  const std::lock_guard lock{mutex_};
  if (boot_now() - used_at_ >= 50s) newest_.reset();
  return newest_ == nullptr;
}

}  // namespace lictor::admin
