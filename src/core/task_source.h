#pragma once

// Compares listings of the tasks' keys with the known versions, and reports each new version and
// each deleted key. Listing (core/listing.h) decides what is read and when: a short list whole, a
// long one by parts or by names, so each event is bounded.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "core/effect.h"
#include "core/event.h"
#include "core/known_keys.h"
#include "core/listing.h"
#include "core/options.h"
#include "core/requests.h"

namespace lictor::core {

class TaskSource {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The key holds this version, which is newer than the one that is known; or it is the version
    /// of a key that check() asked for.
    virtual void on_record(Instant now, const StoredRecord& record, Effects& out) = 0;
    /// A listing as of `index` does not show the key, which was known before that.
    virtual void on_gone(Instant now, KnownKey& known, std::uint64_t index, Effects& out) = 0;
    /// A key that was to be read alone is not there. As of `index` it was listed, or known.
    virtual void on_missing(Instant now, const std::string& key, std::uint64_t index,
                            Effects& out) = 0;
    /// Calls `visit` for every key whose deletion is in flight or acknowledged: a listing of names
    /// that still shows one doesn't say whether it was written again.
    virtual void visit_deleting(const std::function<void(const KnownKey&)>& visit) const = 0;
    /// Whatever was asked for before `time` has been answered.
    virtual void on_answered_before(Instant time) = 0;
  };

  TaskSource(const QueueOptions& options, Requests& requests, const KnownKeys& keys,
             Listener& listener)
      : keys_(keys), listener_(listener), listing_(options, requests) {}

  /// Leadership was won: reads everything.
  void start(Instant now, Effects& out);
  void stop(Effects& out);
  void on(Instant now, const TasksListed& reply, Effects& out);
  void on(Instant now, const TasksFetched& reply, Effects& out);
  void on_time(Instant now, bool busy, Effects& out) { listing_.on_time(now, busy, out); }
  [[nodiscard]] Instant next_deadline() const { return listing_.next_deadline(); }

  /// Reads the key soon; reports it if its version is newer.
  void fetch(const std::string& key) { listing_.fetch(key); }
  /// The same, but reports any version, and also a missing key.
  void check(const std::string& key);
  /// Reads everything again.
  void read_anew(Instant now, Effects& out) { listing_.ask_all_anew(now, out); }
  /// Something of ours was written below the prefix, with this ModifyIndex.
  void wrote(std::uint64_t index) { listing_.wrote(index); }

  [[nodiscard]] bool complete() const { return listing_.complete(); }
  [[nodiscard]] std::uint64_t reading() const { return listing_.reading(); }
  [[nodiscard]] bool has_ended(std::uint64_t reading) const { return listing_.has_ended(reading); }
  [[nodiscard]] bool by_name() const { return listing_.by_name(); }
  [[nodiscard]] bool behind() const { return listing_.behind(); }
  /// fetch() was asked for the key, or a listing shows it, and it is not read yet.
  [[nodiscard]] bool will_read(const std::string& key) const { return listing_.will_read(key); }
  /// Whether a task that was written at `index` is known by now, if it is still there.
  [[nodiscard]] bool has_read(const std::string& key, std::uint64_t index) const {
    return listing_.index() >= index && !listing_.will_read(key);
  }
  /// The last listing that includes the folder key at the prefix did not have it.
  [[nodiscard]] bool folder_missing() const { return folder_missing_; }

 private:
  void tell(Instant now, const StoredRecord& record, Effects& out);
  void compare(Instant now, const std::vector<std::string_view>& names, const TasksListed& reply,
               Effects& out);
  void tell_folders(const TasksListed& reply, bool all, Effects& out);

  const KnownKeys& keys_;
  Listener& listener_;
  Listing listing_;
  std::set<std::string, std::less<>> checked_;  // report any version of these
  std::set<std::string> told_folders_;
  bool folder_missing_ = false;
};

}  // namespace lictor::core
