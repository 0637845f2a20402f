#include "client/cancel_marks.h"

#include <utility>

#include "base/clock.h"
#include "client/change.h"

namespace lictor::client {

CancelMarks::~CancelMarks() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CancelMarks::delete_later(std::string key) {
  const auto entry = store_.get(key);
  if (!entry || !*entry) return;
  Mark mark{boot_now() + stay, std::move(key), (*entry)->modify_index};
  if (stay == Duration::zero()) return remove(mark);
  const std::lock_guard lock{mutex_};
  marks_.push_back(std::move(mark));
  if (!thread_.joinable()) thread_ = std::thread{[this] { serve(); }};
  changed_.notify_all();
}

void CancelMarks::serve() {
  std::unique_lock lock{mutex_};
  while (!ending_ || !marks_.empty()) {
    if (marks_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Instant now = boot_now();
    if (now < marks_.front().due) {
      changed_.wait_for(lock, marks_.front().due - now);
      continue;
    }
    const Mark mark = std::move(marks_.front());
    marks_.pop_front();
    lock.unlock();
    remove(mark);
    lock.lock();
  }
}

// One that cannot be deleted stays; a later one of the same task takes its place.
void CancelMarks::remove(const Mark& mark) {
  static_cast<void>(store_.apply({removal(mark.key, mark.index)}));
}

}  // namespace lictor::client
