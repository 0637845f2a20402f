#include "core/leadership.h"

#include <algorithm>
#include <utility>

namespace lictor::core {

Leadership::Leadership(const QueueOptions& options, Requests& requests)
    : options_(options), requests_(requests), session_(options, requests, trouble_) {
  for (std::uint32_t i = 0; i < options.partitions; ++i) {
    leases_.emplace_back(options, i, requests, trouble_);
  }
}

void Leadership::start(Instant now, const std::optional<std::string>& previous_session,
                       Effects& out) {
  session_.start(now, previous_session, out);
}

void Leadership::on(Instant now, const SessionCreated& reply, Effects& out) {
  on_session(now, session_.on(now, reply, out), out);
}

void Leadership::on(Instant now, const SessionRenewed& reply, Effects& out) {
  on_session(now, session_.on(now, reply, out), out);
}

void Leadership::on(Instant now, const SessionDestroyed& reply, Effects& out) {
  on_session(now, session_.on(now, reply, out), out);
}

void Leadership::on_session(Instant now, Session::Change change, Effects& out) {
  switch (change) {
    case Session::Change::kNone:
    case Session::Change::kRenewed:
      break;
    case Session::Change::kOpened:
      if (retired_) break;
      for (Lease& lease : leases_) {
        if (lease.state() == Lease::State::kFollowing) lease.campaign(now, session_.id(), out);
      }
      break;
    case Session::Change::kGone:
      // A lagging server can also say this of a live session; the locks decide.
      if (any_holds()) {
        for (Lease& lease : leases_) {
          if (lease.holding()) lease.prove(now, out);
        }
        session_.renew_soon(now);
      } else if (!retired_ && all_follow()) {
        replace_session(out);
      }
      break;
    case Session::Change::kClosed:
      for (Lease& lease : leases_) lease.stop(out);
      break;
  }
}

void Leadership::replace_session(Effects& out) {
  for (Lease& lease : leases_) lease.stop(out);
  session_.replace(out);
}

// What a change means for the session; the rest is the caller's.
void Leadership::note(Instant now, std::uint32_t partition, Lease::Change change, Changes& changes,
                      Effects& out) {
  switch (change) {
    case Lease::Change::kNone:
      return;
    case Lease::Change::kSessionGone:
      on_session(now, Session::Change::kGone, out);
      return;
    case Lease::Change::kResigned:
      if (closing_) {
        end_session_if_free(now, out);
      } else if (!retired_) {
        leases_[partition].campaign(now, session_.id(), out);
      }
      break;
    default:
      break;
  }
  if (!leases_[partition].holding()) std::erase(proving_, partition);
  changes.push_back({partition, change});
}

Leadership::Changes Leadership::proved(Instant now, std::uint32_t partition, Instant sent_at,
                                       Effects& out) {
  Changes changes;
  note(now, partition, leases_[partition].proved(now, sent_at, out), changes, out);
  return changes;
}

Leadership::Changes Leadership::refused(Instant now, std::uint32_t partition, Effects& out) {
  Changes changes;
  note(now, partition, leases_[partition].refused(out), changes, out);
  return changes;
}

void Leadership::clock_stepped(Instant now, Effects& out) {
  for (Lease& lease : leases_) lease.clock_stepped(now, out);
}

// The lock can be lost while the session lives: the leader key was deleted or taken by force.
void Leadership::resume(Instant now, std::uint32_t partition, Effects& out) {
  leases_[partition].resume(out);
  if (closing_) {
    end_session_if_free(now, out);
  } else if (!retired_) {
    session_.check(now, out);
  }
}

void Leadership::want_only(Instant now, const std::vector<std::uint32_t>& partitions) {
  auto next = partitions.begin();
  for (std::uint32_t i = 0; i < leases_.size(); ++i) {
    const bool wanted = next != partitions.end() && *next == i;
    leases_[i].want(now, wanted);
    if (wanted) ++next;
  }
}

bool Leadership::read_owners(const std::string& self, BalancerView& view) {
  if (owners_seen_) return false;
  std::vector<std::string> owners;
  std::vector<Instant> free_from;
  for (const Lease& lease : leases_) {
    const bool is_ours =
        lease.state() != Lease::State::kFollowing && lease.state() != Lease::State::kLost;
    if (!is_ours && !lease.other_owner()) return false;
    owners.push_back(is_ours ? self : *lease.other_owner());
    free_from.push_back(lease.free_from());
  }
  view.owners = std::move(owners);
  view.free_from = std::move(free_from);
  owners_seen_ = true;
  return true;
}

void Leadership::retire(Effects& out) {
  retired_ = true;
  for (Lease& lease : leases_) {
    if (lease.state() == Lease::State::kFollowing) lease.stop(out);
  }
}

void Leadership::close(Instant until, Effects& out) {
  if (closing_) return;
  retired_ = closing_ = true;
  session_.close_until(until);
  for (Lease& lease : leases_) {
    if (lease.holding()) lease.resign(Duration::zero(), out);
  }
  end_session_if_free(until, out);
}

// Destroying the session also releases a lock that is being acquired at this moment.
void Leadership::end_session_if_free(Instant now, Effects& out) {
  if (!all_follow()) return;
  for (Lease& lease : leases_) lease.stop(out);
  on_session(now, session_.close(out), out);
}

void Leadership::prove_all(Instant now, Effects& out) {
  const auto is_due = [&](const Lease& lease) { return now >= lease.proof_due(); };
  const bool due = now >= prove_again_at_ || std::any_of(leases_.begin(), leases_.end(), is_due);
  if (!due) return;
  prove_again_at_ = Instant::max();
  std::vector<std::uint32_t> held;
  for (std::uint32_t i = 0; i < leases_.size(); ++i) {
    if (!leases_[i].holding()) continue;
    leases_[i].proof_asked(now);
    held.push_back(i);
  }
  if (held.empty()) return;
  cancel(proof_, out);
  proof_ = requests_.next();
  proof_sent_ = now;
  proving_ = held;
  out.emplace_back(ProveLocks{proof_, session_.id(), std::move(held), options_.partitions,
                              options_.partitions_index});
}

Leadership::Changes Leadership::on(Instant now, const LocksProved& reply, Effects& out) {
  Changes changes;
  if (reply.request != proof_ || !proof_) return changes;
  proof_ = {};
  const std::vector<std::uint32_t> proved = std::exchange(proving_, {});
  if (!reply.ok) {
    trouble_.tell("proving leadership", reply.error, out);
    prove_again_at_ = now + kRetryPause;
    return changes;
  }
  for (const std::uint32_t i : proved) {
    const bool lost = std::find(reply.lost.begin(), reply.lost.end(), i) != reply.lost.end();
    Lease& lease = leases_[i];
    note(now, i, lost ? lease.refused(out) : lease.proved(now, proof_sent_, out), changes, out);
  }
  return changes;
}

Leadership::Changes Leadership::on_time(Instant now, Effects& out) {
  Changes changes;
  on_session(now, session_.on_time(now, out), out);
  if (closed()) return changes;
  if (leases_.size() > 1) prove_all(now, out);
  for (std::uint32_t i = 0; i < leases_.size(); ++i) {
    note(now, i, leases_[i].on_time(now, out), changes, out);
  }
  return changes;
}

bool Leadership::any_holds() const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [](const Lease& lease) { return lease.holding(); });
}

bool Leadership::all_follow() const {
  return std::all_of(leases_.begin(), leases_.end(),
                     [](const Lease& lease) { return lease.state() == Lease::State::kFollowing; });
}

Instant Leadership::next_deadline() const {
  Instant next = std::min(session_.next_deadline(), prove_again_at_);
  for (const Lease& lease : leases_) next = std::min(next, lease.next_deadline());
  return next;
}

}  // namespace lictor::core
