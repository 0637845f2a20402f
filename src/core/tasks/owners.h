#pragma once

// Which claims their owners gave up before they died, so that re-claiming adds no lost owner.
//
// A daemon whose lease ran out stops its jobs. It cannot give their tasks back, since only a leader
// writes. So it notes in its entry among the members which claims it has given up: all up to a
// number. It can do so only while it lives. A new leader reads the entries before it claims
// anything, and counts no lost owner for those claims.
//
//   term begins --> asked --answered, or refused--> known
//                    ^  |
//                    +--+ no answer: again in kRetryPause

#include <cstdint>

#include "core/effect.h"
#include "core/event.h"
#include "core/requests.h"
#include "core/task.h"

namespace lictor::core {

class Owners {
 public:
  explicit Owners(Requests& requests) : requests_(requests) {}

  /// Reads the members' entries again, since a partition was won.
  void read(Effects& out);
  void stop(Effects& out);
  void on(Instant now, const OwnersRead& reply, Effects& out);
  void on_time(Instant now, Effects& out);

  /// The number of the last reading that was asked for.
  [[nodiscard]] std::uint64_t reading() const { return reading_; }
  /// Whether that reading, or a later one, has ended.
  [[nodiscard]] bool has_read(std::uint64_t reading) const { return read_ >= reading; }
  /// Whether the claim's daemon had given it up by the last reading.
  [[nodiscard]] bool have_given_up(const Claim& claim) const;
  [[nodiscard]] Instant next_deadline() const { return read_at_; }

 private:
  void ask(Effects& out);

  Requests& requests_;
  StoreTrouble trouble_;
  RequestId request_;
  Instant read_at_ = Instant::max();  // after a failure
  std::uint64_t reading_ = 0;
  std::uint64_t read_ = 0;
  GivenUp given_up_;
};

}  // namespace lictor::core
