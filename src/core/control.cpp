#include "core/control.h"

#include <utility>

namespace lictor::core {
namespace {

constexpr Duration kReadPause = 1s;

}  // namespace

void Control::start(Effects& out) {
  ++reading_;
  missing_ = false;
  step_down_.reset();
  index_ = 0;
  watch(0, out);
}

void Control::stop(Effects& out) {
  cancel(request_, out);
  read_at_ = Instant::max();
  paused_ = false;
}

void Control::read_again(Effects& out) {
  ++reading_;
  cancel(request_, out);
  watch(0, out);
}

void Control::watch(std::uint64_t index, Effects& out) {
  read_at_ = Instant::max();
  retry_index_ = 0;
  asked_ = index;
  request_ = requests_.next();
  out.emplace_back(WatchControl{request_, index});
}

void Control::on_time(Instant now, Effects& out) {
  if (!request_ && now >= read_at_) watch(retry_index_, out);
}

void Control::set_paused(bool paused, const std::string& by, Effects& out) {
  if (std::exchange(paused_, paused) != paused) {
    out.emplace_back(Fact{paused ? Fact::Kind::kPaused : Fact::Kind::kResumed, {}, by});
  }
  paused_by_ = paused ? by : std::string{};
}

std::optional<std::string> Control::on(Instant now, const ControlRead& reply, Effects& out) {
  if (reply.request != request_) return std::nullopt;
  request_ = {};
  if (!reply.ok) {
    // A key that may not be read pauses nothing; a key whose read was not answered may.
    if (reply.denied) read_ = reading_;
    if (reply.denied && !std::exchange(denied_reported_, true)) {
      out.emplace_back(Fact{Fact::Kind::kDenied, {}, "reading the control key: " + reply.error});
    }
    retry_index_ = !reply.denied && failures_.keeps_index(reply.over_limit) ? asked_ : 0;
    read_at_ = now + (reply.denied ? kRefusedPause : 2 * kReadPause);
    return std::nullopt;
  }
  failures_.over();
  denied_reported_ = false;
  const bool by_quorum = asked_ == 0;
  if (!by_quorum && (!reply.found || reply.consul_index < index_)) {
    watch(0, out);
    return std::nullopt;
  }
  read_ = reading_;
  index_ = reply.consul_index;
  missing_ = !reply.found;
  if (missing_) {
    set_paused(false, "the control key was deleted", out);
    read_at_ = now + kReadPause;
    if (!step_down_) step_down_ = "";
    return std::nullopt;
  }
  // An unreadable control key pauses the queue: that is the safe reading of a mistyped switch.
  if (reply.unreadable && reply.by != paused_by_) {
    out.emplace_back(Fact{Fact::Kind::kControlUnreadable, {}, reply.error});
    paused_ = true;
    paused_by_ = reply.by;
  } else {
    set_paused(reply.paused, reply.by, out);
  }
  // Consul never answers without an index, and a query without one does not wait: no loop.
  if (reply.consul_index != 0) {
    watch(reply.consul_index, out);
  } else {
    read_at_ = now + kReadPause;
  }
  // A step-down that was asked of an earlier leader was not asked of us.
  const std::string before = std::exchange(step_down_, reply.step_down).value_or(reply.step_down);
  if (reply.step_down.empty()) {
    step_down_ = before;
    return std::nullopt;
  }
  if (before == reply.step_down) return std::nullopt;
  return reply.paused ? std::string{} : reply.by;  // while paused, `by` names the pauser
}

}  // namespace lictor::core
