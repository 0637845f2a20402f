#include "cli/follow.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/dead_letters.h"
#include "cli/printable.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

// An election with Consul's default timing takes 20 s; a restart of the local agent less.
constexpr auto kSitOut = 60s;
constexpr auto kPause = 500ms;

bool passes(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

std::string described(const TaskView& view) {
  std::string text{state_text(view.state)};
  if (!view.node.empty()) text += " on " + view.node;
  if (view.state == TaskState::kScheduled && view.due) {
    text += ", due " + relative_time(*view.due, wall_now());
  }
  if (view.attempt > 0) text += ", attempt " + std::to_string(view.attempt);
  if (!view.error.empty()) text += ": " + view.error;
  return printable(text);
}

class Follower {
 public:
  Follower(const Client& client, const std::string& id, std::uint64_t index,
           std::optional<Duration> timeout)
      : client_(client), id_(id), key_(client.layout.task_key(id)), created_(index) {
    if (timeout) until_ = boot_now() + *timeout;
  }

  Result<Ending> run() {
    while (true) {
      const Instant now = boot_now();
      if (now >= until_) return timed_out();
      const auto wait =
          std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(kMaxWait, until_ - now));
      auto watched = client_.store.watch(key_, index_, wait);
      if (!watched) {
        if (auto passed = sit_out(watched.error()); !passed) return tl::unexpected(passed.error());
        continue;
      }
      trouble_since_.reset();
      if (gone(*watched)) {
        // A blocking read may come from a leader that was deposed: only a consistent one counts.
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
      tell(std::move(*watched->entry));
    }
  }

 private:
  [[nodiscard]] bool gone(const Store::Watched& watched) const {
    // Another task under the same id, once ours was gone?
    return !watched.entry || (born_ != 0 && watched.entry->create_index != born_);
  }

  void tell(wire::KvEntry entry) {
    born_ = entry.create_index;
    if (!client_.console.err_terminal().is_terminal) {
      last_ = view_task(client_.layout, std::move(entry), {}, wall_now());
      return;
    }
    const auto lock = client_.store.get(client_.layout.leader_key);
    const bool led = lock && *lock && !(*lock)->session.empty();
    last_ = view_task(client_.layout, std::move(entry),
                      led ? std::string_view{(*lock)->session} : std::string_view{}, wall_now());
    std::string line = printable(id_) + ": " + described(last_);
    if (lock && !led) line += "; nobody leads the queue now";
    client_.console.progress(line);
  }

  // What passes is waited for, up to a point.
  Result<void> sit_out(const Error& error) {
    const Instant now = boot_now();
    if (!passes(error)) return tl::unexpected(error);
    if (!trouble_since_) {
      trouble_since_ = now;
      client_.console.note("lictor: " + error.message + "; waiting for it");
    }
    if (now - *trouble_since_ > kSitOut) return tl::unexpected(error);
    index_ = 0;
    std::this_thread::sleep_for(kPause);
    return {};
  }

  Result<Ending> ending() {
    auto letters = dead_letters_of(client_, id_);
    if (!letters) {
      letters.error().message = "task " + printable(id_) +
                                " has ended, well or as a dead letter: " + letters.error().message;
      return tl::unexpected(std::move(letters.error()));
    }
    Ending ending;
    for (TaskView& letter : *letters) {  // older ones are of an earlier task of this id
      const bool ours = letter.create_index > std::max(created_, born_);
      if (ours && !ending.dead) ending.dead = std::move(letter);
    }
    return ending;
  }

  [[nodiscard]] Result<Ending> timed_out() const {
    std::string text = "task " + printable(id_) + " has not ended within --wait-timeout";
    if (born_ != 0) text += " (" + described(last_) + ")";
    return fail(ErrorCode::kFailed,
                text + "; it goes on: look with \"lictor show " + printable(id_) + '"');
  }

  const Client& client_;
  const std::string& id_;
  const std::string key_;
  const std::uint64_t created_;
  std::uint64_t born_ = 0;   // CreateIndex, once seen
  std::uint64_t index_ = 0;  // of the next blocking query; 0: a consistent read, at once
  Instant until_ = Instant::max();
  std::optional<Instant> trouble_since_;
  TaskView last_;
};

}  // namespace

Result<Ending> follow(const Client& client, const std::string& id, std::uint64_t index,
                      std::optional<Duration> timeout) {
  auto ending = Follower{client, id, index, timeout}.run();
  client.console.end_progress();
  return ending;
}

}  // namespace lictor::cli
