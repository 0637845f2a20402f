#include "core/dispatch/rate_limit.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace lictor::core {
namespace {

// A reserve is used within a round trip to Consul. Unused tokens are lost: a reserve that is kept
// would come on top of a bucket that is full again.
constexpr Duration kReserve = std::chrono::seconds{1};
// Within this time a newly granted right is noticed.
constexpr Duration kLocal = std::chrono::minutes{1};

}  // namespace

void RateLimit::reconfigure() {
  rate_ = options_.rate_limit;
  is_local_ = false;
  reserved_ = 0;
  try_at_ = Instant::min();
}

Rate RateLimit::rate() const {
  constexpr Duration kLongest = std::chrono::hours{24 * 365};  // until an empty bucket is full
  Rate part = *rate_;
  part.burst = static_cast<std::uint32_t>(
      std::clamp<Duration::rep>(kLongest / part.interval, 1, part.burst));
  if (!is_local_) return part;
  const std::size_t all = options_.partitions;
  part.interval =
      part.interval * static_cast<Duration::rep>(all) / static_cast<Duration::rep>(held_);
  part.burst = static_cast<std::uint32_t>(std::max<std::size_t>(part.burst * held_ / all, 1));
  return part;
}

Instant RateLimit::next(const Rate& rate) const {
  return full_at_ - rate.interval * static_cast<Duration::rep>(rate.burst - 1);
}

// Spreads leaders that wait for one token: each looks at another time.
Duration RateLimit::spread() {
  if (is_alone()) return Duration::zero();
  const Duration most = std::clamp<Duration>(rate_->interval, std::chrono::milliseconds{10},
                                             std::chrono::milliseconds{100});
  return Duration{
      static_cast<Duration::rep>(random_.fraction() * static_cast<double>(most.count()))};
}

std::optional<RateLimit::Token> RateLimit::take(Instant now, std::uint32_t partition,
                                                std::size_t most, Effects& out) {
  if (!rate_) return Token{};
  if (reserved_ != 0 && now < reserved_until_) {
    --reserved_;
    return Token{};
  }
  if (claim_ || read_ || now < try_at_) return std::nullopt;
  is_local_ = is_local_ && now < local_until_;
  if (!known_ && !is_local_) {
    read_ = requests_.next();
    out.emplace_back(ReadRate{read_});
    return std::nullopt;
  }
  const Rate rate = this->rate();
  const auto burst = static_cast<Duration::rep>(rate.burst);
  // A fuller bucket can only come from a lower rate before, or from a wrong clock.
  full_at_ = std::clamp(full_at_, now, now + rate.interval * burst);
  if (now < next(rate)) {
    try_at_ = next(rate) + spread();
    known_ = is_alone();
    return std::nullopt;
  }
  if (is_local_) {
    full_at_ += rate.interval;
    return Token{};
  }
  const auto tokens = static_cast<std::size_t>((now - next(rate)) / rate.interval) + 1;
  const std::size_t taken = std::min(tokens, most);
  claim_ = {partition, full_at_ + rate.interval * static_cast<Duration::rep>(taken), taken - 1};
  // Rounded up: rounded down, a claim at 1,000 a second or more could take nothing.
  constexpr Duration kRoundUp = std::chrono::milliseconds{1} - Duration{1};
  return Token{RateMark{index_, clock_.at(claim_->full_at + kRoundUp)}};
}

void RateLimit::refund(const Token& token) {
  if (token.mark) claim_.reset();
}

void RateLimit::on(Instant now, const RateRead& reply, Effects& out) {
  if (!read_ || reply.request != read_) return;
  read_ = {};
  if (reply.denied) return keep_alone(now, "reading its key: " + reply.error, out);
  if (!reply.ok) {
    trouble_.report("reading the key of rate_limit", reply.error, out);
    try_at_ = now + kRetryPause;
    return;
  }
  trouble_.over();
  known_ = true;
  // An older reading is counted down here: if the clock was wrong when it was written, the queue
  // stops once, not after each reading.
  const bool is_new = std::exchange(index_, reply.modify_index) != reply.modify_index;
  if (is_new && reply.full_at) full_at_ = std::max(full_at_, clock_.when(*reply.full_at));
}

void RateLimit::on_settled(Instant now, const WriteBatcher::Settled& settled, Effects& out) {
  const auto* op = std::get_if<RestampOp>(&settled.write.op);
  if (op == nullptr || !op->rate || !claim_) return;
  const Claim claim = *std::exchange(claim_, std::nullopt);
  known_ = false;
  if (settled.verdict == WriteBatcher::Verdict::kApplied) {
    denied_reported_ = false;
    full_at_ = claim.full_at;
    index_ = settled.modify_index;
    known_ = is_alone();
    reserved_ = claim.reserved;
    reserved_until_ = now + kReserve;
  } else if (settled.verdict == WriteBatcher::Verdict::kNoToken) {
    if (!settled.error.empty()) return keep_alone(now, settled.error, out);
    try_at_ = now + (rate_ ? spread() : Duration::zero());
  }
}

void RateLimit::keep_alone(Instant now, const std::string& error, Effects& out) {
  is_local_ = true;
  local_until_ = now + kLocal;
  if (std::exchange(denied_reported_, true)) return;
  out.emplace_back(
      Fact{Fact::Kind::kDenied, {}, "rate_limit counts in each leader alone: " + error});
}

void RateLimit::drop(std::uint32_t partition) {
  if (!claim_ || claim_->partition != partition) return;
  claim_.reset();
  known_ = false;
}

void RateLimit::clear(Effects& out) {
  cancel(read_, out);
  claim_.reset();
  known_ = is_local_ = denied_reported_ = false;
  reserved_ = 0;
  try_at_ = Instant::min();
  trouble_.over();
}

std::optional<Instant> RateLimit::used_up_until(Instant now) const {
  if (!rate_ || (reserved_ != 0 && now < reserved_until_)) return std::nullopt;
  const Instant free = next(rate());
  return now < free ? std::optional{free} : std::nullopt;
}

}  // namespace lictor::core
