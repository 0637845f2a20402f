// Who leads the queue's partitions, and how soon another daemon would.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/check_report.h"
#include "cluster/admin_client.h"
#include "cluster/takeover.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

class LeaderCheck {
 public:
  LeaderCheck(Store& store, const CheckOptions::Queue& queue, bool serves,
              const client::Locks& locks, Report& report)
      : store_(store), queue_(queue), serves_(serves), locks_(locks), report_(report) {}

  void run() {
    const bool divided = locks_.count() > 1;
    if (divided || locks_[0].known) {
      // Without the right to list them, check_rights() has a finding.
      members_ = cluster::read_members(store_, queue_.layout, locks_).value_or(members_);
      cluster::ask_all(members_, 5s);
      if (divided) {
        check_undivided_leader();
        check_leaders();
      } else {
        check_leader(locks_[0]);
      }
      check_wishes();
      check_names();
    }
    check_takeover();
  }

 private:
  [[nodiscard]] std::string name(const char* what) const { return queue_.name + ": " + what; }

  // Of a queue of one partition.
  void check_leader(const client::Lock& lock) {
    const std::string who = lock.name();
    if (who.empty()) return check_who_waits();
    const cluster::Member* member = cluster::find_member(members_, who);
    const std::string doubt = member != nullptr ? cluster::doubt_of(*member) : "";
    const auto seen = parse_rfc3339(member != nullptr ? member->seen : "");
    if (!doubt.empty()) {
      report_.fail(name("leader"), who + " leads, but " + doubt,
                   cluster::if_dead(store_, queue_.layout, lock, *member));
    } else {
      report_.ok(name("leader"),
                 who + " leads" + (seen ? ", last seen " + relative_time(*seen, wall_now()) : ""));
    }
  }

  void check_who_waits() {
    std::vector<std::string> up;
    for (const cluster::Member& member : members_) {
      if (cluster::doubt_of(member).empty()) up.push_back(member.node);
    }
    if (up.empty()) {
      return report_.fail(name("leader"), "nobody leads: no tasks are run",
                          "start a daemon (\"lictor run\"); the log of a running one says what it "
                          "waits for");
    }
    report_.fail(name("leader"), "nobody leads now; up and waiting for the lead: " + some(up),
                 "after a crash of the last leader they wait for its lock-delay; a daemon that "
                 "stepped down leaves the lead to others for 10s; their logs say which it is");
  }

  // A daemon that knows of no partitions runs tasks beside the leaders of these.
  void check_undivided_leader() {
    const auto entry = store_.get(queue_.layout.leader_key);
    if (!entry || !*entry || (*entry)->session.empty()) return;
    report_.fail(
        name("leader"),
        fmt::format("{} holds {}, though the queue has {} partitions with locks of their "
                    "own: it may run tasks that their leaders run, too",
                    client::lock_of(*entry).name(), queue_.layout.leader_key, locks_.count()),
        "stop that daemon, and install this version there");
  }

  void check_leaders() {
    const cluster::Partitions free = cluster::free_partitions(locks_);
    if (!free.empty()) {
      report_.fail(name("leader"),
                   fmt::format("nobody leads {} of {}: their tasks are not run",
                               cluster::partitions_text(free), locks_.count()),
                   "\"lictor leader\" says who takes them, and when; \"lictor members\" says "
                   "which members are draining");
    }
    bool good = free.empty();
    for (const cluster::Member& member : members_) {
      const std::string doubt = member.leads ? cluster::doubt_of(member) : "";
      if (doubt.empty()) continue;
      good = false;
      report_.fail(
          name("leader"),
          member.node + " leads " + cluster::partitions_text(member.partitions) + ", but " + doubt,
          cluster::if_dead(store_, queue_.layout, locks_[member.partitions.front()], member));
    }
    if (good) report_.ok(name("leader"), shares());
  }

  // "a leads partitions 0-7, b leads partitions 8-15; b is draining"
  [[nodiscard]] std::string shares() const {
    std::string text;
    for (const auto& [leader, partitions] : cluster::partitions_by_leader(locks_)) {
      text +=
          (text.empty() ? "" : ", ") + leader + " leads " + cluster::partitions_text(partitions);
    }
    for (const cluster::Member& member : members_) {
      if (member.draining) text += "; " + member.node + " is draining";
    }
    return text.empty() ? "who leads is not known" : text;
  }

  // Whether all ask for the number of partitions that the queue has.
  void check_wishes() {
    std::map<std::uint32_t, std::vector<std::string>> wishes;
    for (const cluster::Member& member : members_) {
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
    const std::uint32_t wished = queue_.options.partitions;
    if (serves_ && wished != locks_.count()) {
      report_.warn(name("partitions"),
                   fmt::format("{}, and this configuration asks for {}", has, wished), stays);
    }
  }

  // A second daemon of the same name is not among the members, since the first holds their entry.
  void check_names() {
    const std::vector<std::string> held = store_.session_names();
    for (const cluster::Member& member : members_) {
      const auto same =
          std::count(held.begin(), held.end(), wire::member_session_name(member.node));
      if (same < 2) continue;
      report_.warn(
          name("members"),
          fmt::format("{} daemons are called {}, and only one of them is among the members", same,
                      member.node),
          "set \"node\" in the configuration of each; where the daemon has just been "
          "restarted, its last session ends within a minute");
    }
  }

  // How long a takeover lasts: by a daemon's configuration, else by a leader's session.
  void check_takeover() {
    if (serves_) {
      return report_.ok(name("takeover"),
                        takeover_text(queue_.options, queue_.session_checks, queue_.hang_timeout));
    }
    const auto leaders = cluster::partitions_by_leader(locks_);
    if (leaders.empty()) return;
    const auto session = store_.session(locks_[leaders.begin()->second.front()].session);
    const auto ttl = session ? parse_duration(session->ttl) : std::nullopt;
    if (!ttl) return;
    const Duration delay = session->lock_delay;
    report_.ok(
        name("takeover"),
        fmt::format("when the leader's host dies or is cut off, another daemon takes over "
                    "within {} to {}, by the leader's session (TTL {}, lock-delay {}); the "
                    "other times are in a daemon's configuration",
                    format_duration(std::chrono::floor<std::chrono::seconds>(*ttl * 2 / 3) + delay),
                    format_duration(2 * *ttl + delay), format_duration(*ttl),
                    format_duration(delay)));
  }

  Store& store_;
  const CheckOptions::Queue& queue_;
  const bool serves_;
  const client::Locks& locks_;
  Report& report_;
  std::vector<cluster::Member> members_;
};

}  // namespace

void check_leaders(Store& store, const CheckOptions::Queue& queue, bool serves,
                   const client::Locks& locks, Report& report) {
  LeaderCheck{store, queue, serves, locks, report}.run();
}

std::string takeover_text(const core::QueueOptions& options,
                          const std::vector<std::string>& session_checks, Duration hang_timeout) {
  // Consul ends a session one to two TTLs after its last renewal (the documentation promises one;
  // 1.8 takes two, consul.md 1.2), which was up to renew_interval ago. Then the lock-delay.
  const Duration least = std::chrono::floor<std::chrono::seconds>(
      options.session_ttl - options.renew_interval + options.lock_delay);
  const Duration most = 2 * options.session_ttl + options.lock_delay;
  const std::string delay = format_duration(options.lock_delay);
  const bool serf =
      std::find(session_checks.begin(), session_checks.end(), "serfHealth") != session_checks.end();
  return fmt::format(
      "another daemon takes over after a clean stop at once; when the leader's daemon dies, within "
      "1s of the end of its jobs, which have {} (kill_grace) for it; when it hangs, {}; when its "
      "host dies or is cut off, within {} to {} (session_ttl {}, lock_delay {}){}",
      format_duration(options.kill_grace),
      hang_timeout > Duration::zero()
          ? format_duration(hang_timeout) + " (hang_timeout) later than that"
          : "as when its host is lost, since hang_timeout is 0s",
      format_duration(least), format_duration(most), format_duration(options.session_ttl), delay,
      serf ? ", or from " + delay + " on if Consul notices" : "");
}

}  // namespace lictor::cli
