#pragma once

// How the queue learns of tasks. A short list is watched whole: one blocking query with values. A
// long one is watched by name, new names are fetched in batches, and what was rewritten is looked
// for part by part (core/sweep.h). The first names tell which it is, and a long list is read part
// by part, so that nothing takes the memory or the time of all of it at once:
//
//   names --short--> everything, again and again
//     |
//     +----long----> every part, once --> names, again and again; parts, when something moved on
//
// Consul does not coalesce wake-ups (CONSUL-FACTS.md 11), so readings are paced: they take at most
// a set share of the time, and less while more tasks are ready than can start.
//
// An answer doesn't say what it cost Consul. For each, Consul walks the tombstones of all keys that
// were deleted below the prefix in the last 15 minutes: 0.16 ms for a thousand, and a thousand
// tasks a second leave 900,000 of them (1.8.7, tests/live/tombstones_test.cpp). We measure that by
// answers that wait for no change: those to a query that is older than a write of our own.

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/sweep.h"

namespace lictor::core {

class Listing {
 public:
  Listing(const QueueOptions& options, Requests& requests)
      : options_(options), requests_(requests) {}

  /// Leadership was won: reads everything, by quorums.
  void start(Instant now, Effects& out);
  void stop(Effects& out);

  enum class Use { kNone, kAll, kPart, kFirst };
  /// How to use `reply`: not at all; as a list of all keys; as records only; only for the folder
  /// key. Sets the pace of the next reading. `emitted` is when it was requested.
  [[nodiscard]] Use accept(Instant now, const TasksListed& reply, Instant& emitted, Effects& out);
  /// Whether `reply` answers one of our requests. Keys that it left unread are requested again.
  [[nodiscard]] bool accept(Instant now, const TasksFetched& reply, Effects& out);

  /// Something of ours was written below the prefix, with this ModifyIndex.
  void wrote(std::uint64_t index) { wrote_ = std::max(wrote_, index); }

  /// Reads everything once more.
  void ask_all_anew(Instant now, Effects& out);

  /// Reads single tasks, soon.
  void fetch(std::string key) { wanted_.insert(std::move(key)); }

  /// The accepted names show a key whose deletion is in flight or was applied since the request: it
  /// may be the old one, or written again. The next names decide, or a read if none come soon.
  void doubt(Instant now, std::string_view key);

  /// `busy`: more tasks are ready than can be started, so new ones can wait.
  void on_time(Instant now, bool busy, Effects& out);
  /// When the oldest of the requests in flight was sent; Instant::max() when there is none.
  [[nodiscard]] Instant oldest_request() const;
  [[nodiscard]] Instant next_deadline() const;
  /// The X-Consul-Index of the last list of all that is there; 0 before there is one.
  [[nodiscard]] std::uint64_t index() const { return index_; }
  /// The key was listed, and its record is yet to be read.
  [[nodiscard]] bool will_read(const std::string& key) const {
    return wanted_.contains(key) ||
           std::find(fetching_.begin(), fetching_.end(), key) != fetching_.end();
  }
  [[nodiscard]] bool complete() const { return complete_; }  // everything was read once
  /// The number of the reading of everything that is under way, or was the last.
  [[nodiscard]] std::uint64_t reading() const { return reading_; }
  /// Whether that reading, or a later one, has ended.
  [[nodiscard]] bool has_ended(std::uint64_t reading) const {
    return complete_ && ended_ >= reading;
  }
  /// The list is long: watched by name.
  [[nodiscard]] bool by_name() const { return by_name_; }
  /// There are tasks that were listed, or will be at once, and are not read yet.
  [[nodiscard]] bool behind() const {
    return !complete_ || index_ == 0 || !wanted_.empty() || !fetching_.empty();
  }

 private:
  // The least of the last few times: one that something else has delayed says nothing.
  class Times {
   public:
    void add(Duration time) { times_[next_++ % times_.size()] = time; }
    [[nodiscard]] Duration least() const {  // nothing before there are so many
      return next_ < times_.size() ? Duration::zero()
                                   : *std::min_element(times_.begin(), times_.end());
    }

   private:
    std::array<Duration, 4> times_{};
    std::size_t next_ = 0;
  };

  void choose_mode(const TasksListed& reply);
  void choose_first(Instant now, const TasksListed& names);
  void begin_anew(Instant at);
  void end_first(Instant now);
  [[nodiscard]] Use accept_part(Instant now, const TasksListed& reply, Effects& out);
  [[nodiscard]] Instant next_watch() const;
  void look_for_rewritten(const TasksListed& reply);
  /// How many tasks to read at once.
  [[nodiscard]] double tasks_in_part() const;
  void learn_size(const TasksListed& reply);
  void tell_trouble(const TasksListed& reply, Effects& out);
  [[nodiscard]] bool is_long(std::size_t tasks) const;
  [[nodiscard]] bool wants_part() const;
  void send_fetch(Instant now, Effects& out);

  const QueueOptions& options_;
  Requests& requests_;

  bool running_ = false;
  bool complete_ = false;
  bool by_quorum_ = true;  // until everything was read
  bool by_name_ = false;
  enum class First { kChoosing, kInParts, kDone };  // reading of everything
  First first_ = First::kDone;
  std::uint64_t reading_ = 0;
  std::uint64_t ended_ = 0;  // the last reading that has ended
  std::uint64_t index_ = 0;
  double bytes_per_task_ = 500;

  RequestId watch_;
  Instant watch_emitted_{};
  Instant watch_at_ = Instant::max();       // when the next may be sent
  Instant slow_watch_at_ = Instant::max();  // the same, while we are busy
  Instant watch_paid_{};                    // when the token bucket is full again
  std::uint64_t wrote_ = 0;                 // the last of our own writes
  std::uint64_t prompt_from_ = 0;  // the watch does not wait: from this index on there is an answer
  Times prompt_times_;
  bool busy_ = false;
  bool in_trouble_ = false;
  WatchFailures failures_;

  Sweep sweep_;  // beside a watch by name
  RequestId part_;
  Instant part_emitted_{};
  Instant part_at_ = Instant::min();  // not before this

  std::set<std::string> wanted_;
  std::vector<std::string> doubted_;
  Instant doubted_until_ = Instant::max();
  RequestId fetch_;
  Instant fetch_emitted_{};
  std::vector<std::string> fetching_;
  Instant fetch_at_ = Instant::min();
};

}  // namespace lictor::core
