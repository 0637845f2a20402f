#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "cli/check_report.h"
#include "cli/members.h"
#include "cli/partitions.h"
#include "cli/takeover.h"

namespace lictor::cli {
namespace {

class PartitionCheck {
 public:
  PartitionCheck(Store& store, const CheckOptions::Queue& queue, const client::Locks& locks,
                 Report& report)
      : store_(store), queue_(queue), locks_(locks), report_(report) {}

  // A daemon that knows of no partitions runs tasks beside the leaders of these.
  void check_undivided_leader() {
    const auto lock = read_lock(store_, queue_.layout);
    if (!lock || lock->session.empty()) return;
    report_.fail(name("leader"),
                 fmt::format("{} holds {}, though the queue has {} partitions with locks of their "
                             "own: it may run tasks that their leaders run, too",
                             lock->name(), queue_.layout.leader_key, locks_.count()),
                 "stop that daemon, and install this version there");
  }

  void check_leaders(const std::vector<Member>& members) {
    const Partitions free = free_partitions(locks_);
    if (!free.empty()) {
      report_.fail(name("leader"),
                   fmt::format("nobody leads {} of {}: their tasks are not run",
                               partitions_text(free), locks_.count()),
                   "\"lictor leader\" says who takes them, and when; \"lictor members\" says "
                   "which members are draining");
    }
    const std::vector<Pulse> pulses = pulses_of(members);
    bool good = free.empty();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Member& member = members[i];
      const std::string doubt = member.leads ? doubt_of(member, pulses[i]) : "";
      if (doubt.empty()) continue;
      good = false;
      report_.fail(
          name("leader"),
          member.node + " leads " + partitions_text(member.partitions) + ", but " + doubt,
          if_dead(store_, queue_.layout, lock_of(locks_, member.partitions.front()), member));
    }
    if (good) report_.ok(name("leader"), shares(members));
  }

  // `wished`: by this configuration; nothing: it is none of a daemon.
  void check_wishes(const std::vector<Member>& members, std::optional<std::uint32_t> wished) {
    std::map<std::uint32_t, std::vector<std::string>> wishes;
    for (const Member& member : members) {
      wishes[wire::number_of(member.wishes, queue_.name)].push_back(member.node);
    }
    if (wishes.empty()) return;
    const std::string has = "the queue has " + counted(locks_.count(), "partition");
    const std::string stays = "it keeps them until all members ask for another number";
    if (wishes.size() > 1) {
      std::string parts;
      for (const auto& [wish, nodes] : wishes) {
        parts += fmt::format("{}{} by {}", parts.empty() ? "" : ", ", wish, fmt::join(nodes, " "));
      }
      report_.warn(name("partitions"),
                   has + ", and its members ask for different numbers: " + parts,
                   "give all of them the same \"partitions\"; " + stays);
    } else if (wishes.begin()->first != locks_.count()) {
      report_.warn(name("partitions"),
                   fmt::format("{}, and its members ask for {}", has, wishes.begin()->first),
                   "the members' logs say what they wait for");
    }
    if (wished && *wished != locks_.count()) {
      report_.warn(name("partitions"),
                   fmt::format("{}, and this configuration asks for {}", has, *wished), stays);
    }
  }

 private:
  [[nodiscard]] std::string name(const char* what) const { return queue_.name + ": " + what; }

  // "a leads partitions 0-7, b leads partitions 8-15; b is draining"
  [[nodiscard]] std::string shares(const std::vector<Member>& members) const {
    std::string text;
    for (const auto& [leader, partitions] : partitions_by_leader(locks_)) {
      text += (text.empty() ? "" : ", ") + leader + " leads " + partitions_text(partitions);
    }
    for (const Member& member : members) {
      if (member.draining) text += "; " + member.node + " is draining";
    }
    return text.empty() ? "who leads is not known" : text;
  }

  Store& store_;
  const CheckOptions::Queue& queue_;
  const client::Locks& locks_;
  Report& report_;
};

}  // namespace

void check_partitions(Store& store, const CheckOptions::Queue& queue, bool serves,
                      const client::Locks& locks, Report& report) {
  PartitionCheck check{store, queue, locks, report};
  if (locks.count() > 1) check.check_undivided_leader();
  const auto members = read_members(store, queue.layout, locks);
  if (!members) return;  // check_rights() reports it
  if (locks.count() > 1) check.check_leaders(*members);
  check.check_wishes(*members, serves ? std::optional{queue.options.partitions} : std::nullopt);
}

}  // namespace lictor::cli
