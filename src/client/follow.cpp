#include "client/follow.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "client/dead_letters.h"

namespace lictor::client {
namespace {

using namespace std::chrono_literals;

// An election with Consul's default timing takes 20 s; a restart of the local agent less.
constexpr auto kSitOut = 60s;
constexpr auto kPause = 500ms;

bool passes(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

class Follower {
 public:
  Follower(const Queue& queue, const std::string& id, const WaitOptions& options)
      : queue_(queue), id_(id), key_(queue.layout.task_key(id)), options_(options) {
    if (options.timeout) until_ = boot_now() + *options.timeout;
  }

  Result<Ending> run() {
    while (true) {
      const Instant now = boot_now();
      if (now >= until_) return Ending{Ending::How::kTimedOut, std::move(last_)};
      const auto wait =
          std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(kMaxWait, until_ - now));
      auto watched = queue_.store.watch(key_, index_, wait);
      if (!watched) {
        if (auto passed = sit_out(watched.error()); !passed) return tl::unexpected(passed.error());
        continue;
      }
      trouble_since_.reset();
      if (gone(*watched)) {
        // A blocking read may be stale: confirm with a consistent one.
        if (index_ != 0) {
          index_ = 0;
          continue;
        }
        auto ended = ending();
        if (ended || !passes(ended.error())) return ended;
        if (auto passed = sit_out(ended.error()); !passed) return tl::unexpected(passed.error());
        continue;
      }
      index_ = watched->index;
      see(std::move(*watched->entry));
    }
  }

 private:
  [[nodiscard]] bool gone(const Store::Watched& watched) const {
    // A new CreateIndex: another task with the same id.
    return !watched.entry || (born_ != 0 && watched.entry->create_index != born_);
  }

  void see(wire::KvEntry entry) {
    born_ = entry.create_index;
    // The leader key is only needed to describe the task.
    if (!options_.changed && !options_.timeout) {
      last_ = view_task(queue_.layout, std::move(entry), {}, wall_now());
      return;
    }
    const auto lock = queue_.store.get(queue_.layout.leader_key);
    const Leader leader = lock ? leader_of(*lock) : Leader{};
    last_ = view_task(queue_.layout, std::move(entry), leader, wall_now());
    if (options_.changed) options_.changed(last_, !leader.session.empty() || !lock);
  }

  // Waits out a temporary error, for kSitOut at most.
  Result<void> sit_out(const Error& error) {
    const Instant now = boot_now();
    if (!passes(error)) return tl::unexpected(error);
    if (!trouble_since_) {
      trouble_since_ = now;
      if (options_.trouble) options_.trouble(error);
    }
    if (now - *trouble_since_ > kSitOut) return tl::unexpected(error);
    index_ = 0;
    std::this_thread::sleep_for(kPause);
    return {};
  }

  // How it ended. Older dead letters and records belong to an earlier task with this id.
  Result<Ending> ending() {
    const std::uint64_t since = std::max(options_.index, born_);
    auto letters = dead_letters_of(queue_, id_);
    if (!letters) {
      letters.error().message = "task " + printable(id_) +
                                " has ended, well or as a dead letter: " + letters.error().message;
      return tl::unexpected(std::move(letters.error()));
    }
    // The first letter after the task was written; if that is unknown, the last one.
    Ending ending;
    for (TaskInfo& letter : *letters) {
      if (letter.create_index <= since) continue;
      ending = {Ending::How::kDead, std::move(letter)};
      if (since != 0) return ending;
    }
    auto done = queue_.store.get(queue_.done_key(id_));
    if (!done && done.error().code != ErrorCode::kPermissionDenied) {
      return tl::unexpected(std::move(done.error()));
    }
    if (done && *done && (*done)->modify_index > std::max(since, ending.task.create_index)) {
      return Ending{Ending::How::kDone, view_done(queue_.layout, **std::move(done))};
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
  std::optional<Instant> trouble_since_;
  TaskInfo last_;
};

}  // namespace

std::string described(const TaskInfo& task) {
  std::string text{state_text(task.state)};
  if (!task.node.empty()) text += " on " + task.node;
  if (task.state == TaskState::kScheduled && task.due) {
    text += ", due " + relative_time(*task.due, wall_now());
  }
  if (task.attempt > 0) text += ", attempt " + std::to_string(task.attempt);
  if (!task.error.empty()) text += ": " + task.error;
  return printable(text);
}

Result<Ending> follow(const Queue& queue, const std::string& id, const WaitOptions& options) {
  return Follower{queue, id, options}.run();
}

}  // namespace lictor::client
