#pragma once

// The operator's switches: whether the queue is paused, and who asked for a step-down. The control
// key is watched by a blocking query, which a lagging server may answer. An answer that is older
// than the one before, or that shows no key, is checked by a quorum read before it counts.
//
//   watch --newer--> acted on --> watch            quorum read --> acted on --> watch
//     |                                               ^    |
//     +---- older, or the key is gone ----------------+    +-- gone: not paused; again in 1 s

#include <cstdint>
#include <optional>
#include <string>

#include "core/effect.h"
#include "core/event.h"
#include "core/requests.h"

namespace lictor::core {

class Control {
 public:
  explicit Control(Requests& requests) : requests_(requests) {}

  /// A term begins.
  void start(Effects& out);
  void stop(Effects& out);
  /// Reads the switches by a quorum, since a partition was won in addition to others.
  void read_again(Effects& out);
  void on_time(Instant now, Effects& out);
  /// Returns who asked for a step-down, if the request is new; empty: the requester gave no name.
  std::optional<std::string> on(Instant now, const ControlRead& reply, Effects& out);
  /// The key was created and is watched from now on.
  void on_marked(Instant now) {
    missing_ = false;
    retry_index_ = 0;
    read_at_ = now;
  }

  /// The number of the last reading that start() or read_again() asked for.
  [[nodiscard]] std::uint64_t reading() const { return reading_; }
  /// Whether the pause state is known as of that reading, or a later one.
  [[nodiscard]] bool has_read(std::uint64_t reading) const { return read_ >= reading; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] const std::string& paused_by() const { return paused_by_; }
  /// The key is missing; a watch on a missing key wakes on every write near it.
  [[nodiscard]] bool missing() const { return missing_; }
  [[nodiscard]] Instant next_deadline() const { return request_ ? Instant::max() : read_at_; }

 private:
  void watch(std::uint64_t index, Effects& out);
  void set_paused(bool paused, const std::string& by, Effects& out);

  Requests& requests_;
  RequestId request_;
  std::uint64_t asked_ = 0;        // the index that the request waits beyond; 0: a quorum read
  std::uint64_t index_ = 0;        // of the last answer that took effect
  std::uint64_t retry_index_ = 0;  // of the failed watch; 0: read again
  WatchFailures failures_;
  Instant read_at_ = Instant::max();
  std::uint64_t reading_ = 0;
  std::uint64_t read_ = 0;  // the last reading that was answered
  bool missing_ = false;
  bool paused_ = false;
  std::string paused_by_;
  std::optional<std::string> step_down_;  // the last request seen in this term
  bool denied_reported_ = false;
};

}  // namespace lictor::core
