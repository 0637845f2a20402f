#pragma once

// The queue's rate_limit: on average one claim in `interval`, up to `burst` at once, by the generic
// cell rate algorithm (ITU-T I.371, appendix A), which keeps one instant: when the bucket is full
// again.
//
// The bucket belongs to the queue, so it is in Consul. A claim that takes tokens writes the bucket
// in its own transaction, by CAS: so the next leader goes on with it, and the leaders of several
// partitions share it.
//
//   unknown --ReadRate--> known --take()--> claim under way --applied--> known
//      ^                    |                     |
//      |   used up, and     |                     | refused: another leader was first
//      +--- shared ---------+                     |
//      +------------------------------------------+
//
// A claim also takes the tokens of the claims that can follow it at once, so that a burst takes two
// round trips to Consul and not one for each task.
//
// While Consul's token lacks the right to the key, each leader keeps its part of the rate by
// itself, and checks each minute whether it has the right by now.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/random.h"
#include "core/commits/write_batcher.h"
#include "core/effect.h"
#include "core/event.h"
#include "core/options.h"
#include "core/requests.h"
#include "core/wall_clock.h"

namespace lictor::core {

class RateLimit {
 public:
  /// The token of a claim. `mark`: what the claim must write.
  struct Token {
    std::optional<RateMark> mark;
  };

  RateLimit(const QueueOptions& options, Requests& requests, const WallClock& clock, Random& random)
      : options_(options),
        requests_(requests),
        clock_(clock),
        random_(random),
        rate_(options.rate_limit) {}

  /// Takes over the rate of the options.
  void reconfigure();
  /// This host leads so many partitions.
  void share(std::size_t held) { held_ = held; }

  /// A token for a claim under the fence of `partition`, after which up to `most` - 1 may follow.
  /// std::nullopt if there is none before next_try().
  [[nodiscard]] std::optional<Token> take(Instant now, std::uint32_t partition, std::size_t most,
                                          Effects& out);
  /// Returns the token of a claim that was not made.
  void refund(const Token& token);
  void on(Instant now, const RateRead& reply, Effects& out);
  void on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out);
  /// The partition is lost, and with it the claim under way for it.
  void drop(std::uint32_t partition);
  /// The term is over.
  void clear(Effects& out);

  /// When to try again; Instant::max(): once an answer has come.
  [[nodiscard]] Instant next_try() const { return claim_ || read_ ? Instant::max() : try_at_; }
  /// When a token is available again, as far as known; std::nullopt if there is one.
  [[nodiscard]] std::optional<Instant> used_up_until(Instant now) const;

 private:
  struct Claim {
    std::uint32_t partition = 0;
    Instant full_at{};         // if the claim is applied
    std::size_t reserved = 0;  // for the claims that follow
  };

  /// This host's part of the rate, while it keeps the bucket by itself.
  [[nodiscard]] Rate rate() const;
  /// No other host leads a partition.
  [[nodiscard]] bool is_alone() const { return held_ == options_.partitions; }
  [[nodiscard]] Instant next(const Rate& rate) const;
  [[nodiscard]] Duration spread();
  void keep_alone(Instant now, const std::string& error, Effects& out);

  const QueueOptions& options_;
  Requests& requests_;
  const WallClock& clock_;
  Random& random_;
  std::size_t held_ = 1;  // partitions

  std::optional<Rate> rate_;
  Instant full_at_{};        // as far as is known
  std::uint64_t index_ = 0;  // of the bucket's key
  bool known_ = false;       // index_ is known, and nobody else may have changed it since
  bool is_local_ = false;    // the key may not be read or written
  Instant local_until_{};
  bool denied_reported_ = false;
  RequestId read_;
  std::optional<Claim> claim_;  // under way
  std::size_t reserved_ = 0;
  Instant reserved_until_{};
  Instant try_at_ = Instant::min();
  StoreTrouble trouble_;
};

}  // namespace lictor::core
