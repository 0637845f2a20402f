#pragma once

// Reads the tasks from Consul. Names are watched by a blocking query, and compared with the known
// keys: a key that is gone is reported at once, and the value of a new one is read. A rewritten
// task shows no new name, so known versions are checked as well (version_check.h).
//
//                 names --------> known? --no--> a generation of values --> on_record() for each,
//                   ^                |                                      on_generation_read()
//                   |                +--yes, but no longer listed --> on_gone()
//   paced, index ---+
//
// The tasks of a generation (value_reader.h) are reported as they are read, and once more when all
// of them are read: a task that must start in order waits for that.
//
// Names that arrive while a generation is read wait: they give the next generation.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/reading/reading_pace.h"
#include "core/reading/value_reader.h"
#include "core/reading/version_check.h"
#include "core/requests.h"
#include "core/tasks/known_keys.h"

namespace lictor::core {

class TaskSource {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The key holds this version, which is newer than the known one, or was asked for by check().
    /// `in_generation`: on_generation_read() follows.
    virtual void on_record(Instant now, const StoredRecord& record, bool in_generation,
                           Effects& out) = 0;
    /// All tasks of the generation were reported.
    virtual void on_generation_read(Instant now, Effects& out) = 0;
    /// The names as of `index` do not show the key, which was known before that.
    virtual void on_gone(Instant now, TaskEntry& known, std::uint64_t index, Effects& out) = 0;
    /// A key that was to be read alone is missing. As of `index` it was listed, or known. Returns
    /// whether the names must show if the key is gone.
    virtual bool on_missing(Instant now, const std::string& key, std::uint64_t index,
                            Effects& out) = 0;
    /// The key's deletion is in flight or acknowledged: if names still show it, it may or may not
    /// have been written again.
    [[nodiscard]] virtual bool is_deleting(const TaskEntry& known) const = 0;
    /// No write of ours is under way for the key, so its known version should be in Consul.
    [[nodiscard]] virtual bool is_stable(const TaskEntry& known) const = 0;
    /// All requests sent before `time` have been answered.
    virtual void on_answered_before(Instant time) = 0;
    /// A restored snapshot has brought back an older version; on_record() follows with it.
    virtual void on_restored(const std::string& key) = 0;
  };

  TaskSource(const QueueOptions& options, Requests& requests, const KnownKeys& keys,
             Listener& listener)
      : requests_(requests),
        keys_(keys),
        listener_(listener),
        values_(options, requests),
        versions_(options, requests, keys) {}

  /// Leadership was won: reads everything.
  void start(Instant now, Effects& out);
  void stop(Effects& out);
  void on(Instant now, const TasksListed& reply, Effects& out);
  void on(Instant now, const TasksFetched& reply, Effects& out);
  void on(Instant now, const TasksChecked& reply, Effects& out);
  /// `busy`: more tasks are ready than can be started, so new ones can wait.
  void on_time(Instant now, bool busy, Effects& out);
  [[nodiscard]] Instant next_deadline() const;

  /// Reads the key in the next generation; reports it if its version is newer.
  void fetch(const std::string& key) { values_.read_in_order(key); }
  /// Reads the key before all others, and reports any version, or that the key is missing.
  void check(const std::string& key);
  /// Lists the names once more, by a quorum.
  void read_again(Instant now, Effects& out);
  /// So many tasks were deleted.
  void deleted(Instant now, std::size_t tasks) { pace_.deleted(now, tasks); }

  /// Whether everything was read once.
  [[nodiscard]] bool complete() const { return complete_; }
  /// The number of the reading of everything that is under way, or else of the last one.
  [[nodiscard]] std::uint64_t reading() const { return reading_; }
  /// Whether that reading, or a later one, has ended.
  [[nodiscard]] bool has_ended(std::uint64_t reading) const {
    return complete_ && ended_ >= reading;
  }
  /// Whether some tasks are listed, or will be at once, and are not read yet.
  [[nodiscard]] bool behind() const {
    return !complete_ || index_ == 0 || names_.has_value() || !values_.is_idle();
  }
  /// Whether the key was fetched or listed, and is not read yet.
  [[nodiscard]] bool will_read(const std::string& key) const;
  /// Whether a task that was written at `index` is known by now, if it is still there.
  [[nodiscard]] bool has_read(const std::string& key, std::uint64_t index) const {
    return index_ >= index && !will_read(key);
  }
  /// The last names did not include the folder key at the prefix.
  [[nodiscard]] bool folder_missing() const { return folder_missing_; }

 private:
  /// Names whose values are still to be read.
  struct Names {
    KeyList keys;
    std::uint64_t reading = 0;
    std::uint64_t index = 0;
    Instant asked_at{};
  };

  void ask_names(Instant now, Effects& out);
  void list_again(Instant at, Effects& out);
  void on_failed(Instant now, const TasksListed& reply, Effects& out);
  void compare(Instant now, const TasksListed& reply, Effects& out);
  void begin_generation(std::vector<std::string_view> unknown);
  void advance_generation(Instant now, Effects& out);
  void report(Instant now, RequestId request, const StoredRecord& record, bool in_generation,
              Effects& out);
  [[nodiscard]] Instant oldest_request() const;
  [[nodiscard]] Instant next_watch() const { return std::max(watch_at_, pace_.next(busy_)); }

  Requests& requests_;
  const KnownKeys& keys_;
  Listener& listener_;
  ReadingPace pace_;
  ValueReader values_;
  VersionCheck versions_;

  bool running_ = false;
  bool complete_ = false;
  std::uint64_t reading_ = 0;
  std::uint64_t ended_ = 0;  // the last reading that has ended
  std::uint64_t index_ = 0;  // of the last names; 0: the next names come by a quorum read, at once
  RequestId watch_;
  bool watch_waits_ = false;  // for a change of the names
  Instant watch_asked_at_{};
  std::uint64_t watch_reading_ = 0;    // the reading that its names belong to
  Instant watch_at_ = Instant::max();  // not before this, apart from the pace
  WatchFailures failures_;
  bool busy_ = false;
  StoreTrouble trouble_;         // with names
  StoreTrouble values_trouble_;  // with values

  std::optional<Names> names_;  // of the next generation
  bool generation_ = false;     // a generation is being read
  std::uint64_t generation_reading_ = 0;
  std::uint64_t generation_index_ = 0;

  std::vector<std::string> doubted_;  // listed, although we deleted them
  Instant doubted_until_ = Instant::max();
  Instant list_again_at_ = Instant::max();  // known keys are gone, and the watch does not show it

  // Report any version of these keys that a later request than this one reads.
  std::map<std::string, RequestId, std::less<>> checked_;
  // Consul does not have these versions of these keys any more.
  std::map<std::string, std::uint64_t, std::less<>> outdated_;
  std::set<std::string> seen_folders_;
  bool folder_missing_ = false;
};

}  // namespace lictor::core
