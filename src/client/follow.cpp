// Client::wait() follows a task to its end, on whichever host it runs.
//
//   watch tasks/<id> --changed--> reported to the caller --> watch on
//       |
//       +-- gone, as a blocking query says --> again by a consistent read --gone--> how did it end?
//              a dead letter, the history entry, or no trace: done, or deleted <------+
//
// In a queue without history the entry of a cancelled task stays for two seconds (CancelMarks), so
// the look at the entry must come soon after the key is gone.

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/try.h"
#include "client/locks.h"
#include "client/queue.h"
#include "client/retry.h"
#include "client/task_info.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

// An election with Consul's default timing takes 20 s; a restart of the local agent less.
constexpr auto kMaxWatchTrouble = 60s;

// A key with another CreateIndex is another task.
class Follower {
 public:
  Follower(const Queue& queue, const std::string& id, const WaitOptions& options)
      : queue_(queue), id_(id), key_(queue.layout.task_key(id)), options_(options) {
    const Instant now = boot_now();
    if (options.timeout) until_ = now + std::min(*options.timeout, Instant::max() - now);
  }

  Result<Ending> run() {
    while (true) {
      const Instant now = boot_now();
      if (now >= until_) return Ending{Ending::How::kTimedOut, std::move(last_)};
      auto ended = look(std::min<Duration>(kMaxWait, until_ - now));
      if (ended && *ended) return **std::move(ended);
      if (!ended && !sit_out(ended.error())) return tl::unexpected(std::move(ended.error()));
    }
  }

 private:
  // Waits for a change of the task, for `wait` at most. std::nullopt if it has not ended yet.
  Result<std::optional<Ending>> look(Duration wait) {
    LICTOR_TRY(auto watched, queue_.store.watch(
                                 key_, index_, std::chrono::ceil<std::chrono::milliseconds>(wait)));
    trouble_.reset();
    if (!gone(watched)) {
      index_ = watched.index;
      see(*std::move(watched.entry));
      return std::nullopt;
    }
    // A blocking read may be stale: confirm with a consistent one.
    if (std::exchange(index_, 0) != 0) return std::nullopt;
    return ending();
  }

  [[nodiscard]] bool gone(const Store::Watched& watched) const {
    return !watched.entry || (born_ != 0 && watched.entry->create_index != born_);
  }

  void see(wire::KvEntry entry) {
    born_ = entry.create_index;
    const bool is_told = options_.changed || options_.timeout;
    const Locks locks =
        is_told ? locks_if_known(read_locks(queue_.store, queue_.layout)) : Locks::unknown();
    last_ = view_task(queue_.layout, std::move(entry), locks, wall_now());
    const LockView& lock = locks.of(last_);
    if (options_.changed) options_.changed(last_, !lock.session.empty() || !lock.known);
  }

  // Waits out a temporary error. False: it is permanent, or has lasted for kMaxWatchTrouble.
  bool sit_out(const Error& error) {
    if (!is_temporary(error)) return false;
    if (!trouble_) {
      trouble_.emplace(kMaxWatchTrouble);
      if (options_.trouble) options_.trouble(error);
    }
    index_ = 0;
    return trouble_->pause();
  }

  // Finds the task's end. Older dead letters and records belong to an earlier task with this id.
  Result<std::optional<Ending>> ending() {
    const std::uint64_t since = std::max(options_.index, born_);
    auto letters = dead_letters_of(queue_, id_);
    if (!letters) {
      letters.error().message = "task " + printable(id_) +
                                " has ended, well or as a dead letter: " + letters.error().message;
      return tl::unexpected(std::move(letters.error()));
    }
    // The first letter after the task was written; if that is unknown, the last one.
    Ending ending;
    for (TaskInfo& letter : letters->of_task) {
      if (letter.create_index <= since) continue;
      ending = {Ending::How::kDead, std::move(letter)};
      if (since != 0) return ending;
    }
    auto done = queue_.store.get(queue_.done_key(id_));
    if (!done && done.error().code != ErrorCode::kPermissionDenied) {
      return tl::unexpected(std::move(done.error()));
    }
    if (done && *done && (*done)->modify_index > std::max(since, ending.task.create_index)) {
      TaskInfo record = view_done(queue_.layout, **std::move(done));
      const bool cancelled = record.state == TaskState::kCancelled;
      return Ending{cancelled ? Ending::How::kCancelled : Ending::How::kDone, std::move(record)};
    }
    if (ending.how == Ending::How::kGone && since == 0) {
      return fail(ErrorCode::kNotFound, "no task " + printable(id_) + " in queue \"" + queue_.name +
                                            "\"; if it is done, it left no trace");
    }
    return ending;
  }

  const Queue& queue_;
  const std::string& id_;
  const std::string key_;
  const WaitOptions& options_;
  std::uint64_t born_ = 0;   // CreateIndex, once seen
  std::uint64_t index_ = 0;  // of the next blocking query; 0: a consistent read, at once
  Instant until_ = Instant::max();
  std::optional<Patience> trouble_;
  TaskInfo last_;
};

}  // namespace

Result<Ending> follow(const Queue& queue, const std::string& id, const WaitOptions& options) {
  return Follower{queue, id, options}.run();
}

}  // namespace lictor::client
