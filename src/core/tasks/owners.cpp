#include "core/tasks/owners.h"

namespace lictor::core {
void Owners::read(Effects& out) {
  ++reading_;
  cancel(request_, out);
  ask(out);
}

void Owners::stop(Effects& out) {
  cancel(request_, out);
  read_at_ = Instant::max();
}

void Owners::ask(Effects& out) {
  read_at_ = Instant::max();
  request_ = requests_.next();
  out.emplace_back(ReadOwners{request_});
}

void Owners::on(Instant now, const OwnersRead& reply, Effects& out) {
  if (reply.request != request_ || !request_) return;
  request_ = {};
  if (!reply.ok && !reply.refused) {
    trouble_.report("reading what the members have given up", reply.error, out);
    read_at_ = now + kRetryPause;
    return;
  }
  trouble_.over();
  read_ = reading_;
  given_up_ = reply.given_up;
}

void Owners::on_time(Instant now, Effects& out) {
  if (now >= read_at_) ask(out);
}

bool Owners::have_given_up(const Claim& claim) const {
  const auto last = given_up_.find(claim.node);
  return last != given_up_.end() && is_up_to(claim.nonce, last->second);
}

}  // namespace lictor::core
