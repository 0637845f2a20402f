// How the daemons of the cluster find out how many partitions there are, and change the number:
// what runtime/queue_supervisor.cpp does, with requests that are lost, late and spoilt like any
// other.

#include <type_traits>

#include "base/overloaded.h"
#include "cluster.h"

namespace lictor::core::test {

void Cluster::join(Daemon& daemon) {
  FleetMember& member = members_[daemon.name];
  member.member.id = daemon.name;
  member.desired_partitions =
      daemon.division ? daemon.division->desired_partitions() : daemon.options.partitions;
  tell_members();
}

// The number that it asks for is in its entry a little later.
void Cluster::publish(Daemon& daemon) {
  const auto member = members_.find(daemon.name);
  if (member == members_.end() ||
      member->second.desired_partitions == daemon.division->desired_partitions())
    return;
  at(now + 300ms, [this, &daemon, life = daemon.life,
                   desired_partitions = daemon.division->desired_partitions()] {
    if (daemon.life == life && members_.contains(daemon.name))
      members_[daemon.name].desired_partitions = desired_partitions;
  });
}

// A daemon that holds no lock has given up all claims that it made (QueueSupervisor::given_up()).
void Cluster::give_up_claims(Daemon& daemon) {
  if (!daemon.queue || daemon.queue->holds_lock()) return;
  const std::uint64_t last = daemon.queue->next_attempt() - 1;
  if (std::exchange(daemon.given_up, last) == last) return;
  at(now + 300ms, [this, &daemon, life = daemon.life] { publish_given_up(daemon, life); });
}

void Cluster::publish_given_up(Daemon& daemon, std::uint64_t life) {
  if (daemon.life != life || !daemon.is_up()) return;
  const Fault f = fault(daemon, RenewSession{});
  const bool is_lost = f.refused || f.lose_request || f.no_leader;
  if (is_lost || now < daemon.paused_until) {
    at(std::max(now + 1s, daemon.paused_until),
       [this, &daemon, life] { publish_given_up(daemon, life); });
    return;
  }
  const std::string process = daemon.queue_identity();
  given_up_log_[process].emplace(daemon.given_up, now);
  given_up_[daemon.name] = process + '-' + std::to_string(daemon.given_up);
}

std::optional<Instant> Cluster::given_up_at(const std::string& nonce) const {
  const std::size_t hyphen = nonce.rfind('-');
  const auto log = given_up_log_.find(nonce.substr(0, hyphen));
  if (log == given_up_log_.end()) return std::nullopt;
  const auto first = log->second.lower_bound(std::stoull(nonce.substr(hyphen + 1)));
  return first == log->second.end() ? std::nullopt : std::optional{first->second};
}

OwnersRead Cluster::serve(Daemon&, const ReadOwners& effect) {
  OwnersRead reply;
  reply.request = effect.request;
  reply.ok = !given_up_refused;
  reply.refused = given_up_refused;
  if (!given_up_refused) reply.given_up = given_up_;
  return reply;
}

void Cluster::divide(Daemon& daemon) {
  daemon.divide_now = false;
  Division::Service service;
  if (daemon.queue) {
    service.count_changed = daemon.queue->count_changed();
    service.holds_all = true;
    for (std::uint32_t i = 0; i < daemon.options.partitions; ++i) {
      service.holds_all = service.holds_all && daemon.queue->holds_lock(i);
    }
    service.stopped = daemon.stopped;
    service.any_job = !daemon.jobs.empty();
    service.kept_by = daemon.kept_by;
    service.locks_free_from = daemon.queue->locks_free_from();
  }
  DivisionActs acts;
  daemon.division->on_time(local_time(daemon, now), service, acts);
  carry_out(daemon, acts);
}

namespace {

std::string act_text(const DivisionAct& act) {
  return std::visit(
      Overloaded{[](const ServeQueue& each) { return "serves " + std::to_string(each.count); },
                 [](const EndService& each) {
                   return std::string{each.keeps_locks ? "finishes" : "ends its service"};
                 },
                 [](const DropService&) { return std::string{"drops its service"}; },
                 [](const CreateCount& each) { return "creates " + std::to_string(each.count); },
                 [](const ChangeCount& each) {
                   return "changes " + std::to_string(each.from) + " to " + std::to_string(each.to);
                 },
                 [](const DivisionNote& each) { return "notes: " + each.error; },
                 [](const auto&) { return std::string{"asks or tells about the division"}; }},
      act);
}

}  // namespace

// The number is as it was when it began to serve, and nobody asked for another one of late.
bool Cluster::has_no_reason_to_end(const Daemon& daemon) const {
  const QueueOptions& served = daemon.options;
  return served.partitions_index != 0 && served.partitions_index == store.partitions_index() &&
         wish_ == served.partitions && now > wished_at_ + 2min;
}

void Cluster::carry_out(Daemon& daemon, const DivisionActs& acts) {
  const auto drop = [&] {
    daemon.first_attempt = daemon.queue->next_attempt();
    end_queue(daemon);
    ++daemon.incarnation;
    daemon.inbox.clear();
    daemon.waiting.clear();
    daemon.kept_session.clear();  // it has seen to its lock itself
    std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.daemon == &daemon; });
  };
  for (const DivisionAct& act : acts) {
    if (trace) show(daemon.name + ": " + act_text(act));
    std::visit(Overloaded{[&](const ServeQueue& each) {
                            daemon.options.partitions = each.count;
                            daemon.options.partitions_index = each.index;
                            daemon.options.only_single = each.only_single;
                            serve_queue(daemon, daemon.options);
                          },
                          [&](const EndService& each) {
                            if (has_no_reason_to_end(daemon)) {
                              violation(daemon.name + " ends its service, and the number stays");
                            }
                            tell(daemon, StopRequested{each.keeps_locks});
                          },
                          [&](const DropService&) { drop(); },
                          [&](const MembersSeen& each) { tell(daemon, each); },
                          [&](const DivisionNote&) {},
                          [&](const auto& each) { ask_of_division(daemon, each); }},
               act);
  }
  publish(daemon);
}

template <class Ask>
void Cluster::ask_of_division(Daemon& daemon, const Ask& ask) {
  const Fault f = fault(daemon, ReadLeader{});
  ++daemon.requests;
  using Reply = std::conditional_t<std::is_same_v<Ask, ReadFleet>, FleetRead, DivisionReply>;
  const auto act = [this, &daemon, life = daemon.life](const Reply& reply) {
    if (daemon.life != life || !daemon.division) return;
    DivisionActs acts;
    daemon.division->on(local_time(daemon, now), reply, acts);
    carry_out(daemon, acts);
  };
  const auto hear = [=, this, &daemon, heard = std::make_shared<bool>(false)](const Reply& reply) {
    if (std::exchange(*heard, true)) return;
    if (now >= daemon.paused_until) return act(reply);
    at(daemon.paused_until, [=] { act(reply); });  // it reads it when it goes on
  };
  Reply none;
  none.error = "no answer";
  const Duration patience = f.refused ? f.back : daemon.options.request_timeout;
  at(now + patience, [=] { hear(none); });
  if (f.refused || f.lose_request || f.no_leader) return;
  at(now + f.out, [=, this, by_other = daemon.is_remapped] {
    store.tamper(now, f.tampering);
    store.map_by_other(by_other);
    Reply reply = store.answer(ask);
    store.map_by_other(false);
    if constexpr (std::is_same_v<Reply, FleetRead>) {
      for (const auto& [name, member] : members_) reply.members.push_back(member);
    }
    store.tamper(now, {});
    if (!f.lose_reply) at(now + f.back, [=] { hear(reply); });
  });
}

}  // namespace lictor::core::test
