// Checks who leads the queue's partitions, and how soon another daemon would take over.
//
// Most lines are the findings that the admin API has as well (cluster/diagnosis.h). Two need this
// host: a number of partitions that only this configuration asks for, and two daemons of one name.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/check.h"
#include "cluster/diagnosis.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;

class LeaderCheck {
 public:
  LeaderCheck(Store& store, const CheckOptions::Queue& queue, bool serves,
              const client::Locks& locks, Report& report)
      : store_(store), queue_(queue), serves_(serves), locks_(locks), report_(report) {}

  std::optional<std::vector<cluster::Member>> run() {
    std::optional<std::vector<cluster::Member>> members;
    if (locks_.count() > 1 || locks_[0].known) {
      // Without the right to list the members, check_rights() has a finding.
      fleet_.locks = locks_;
      auto fleet = cluster::read_fleet({store_, queue_.name, queue_.layout}, locks_, 5s);
      if (fleet) {
        fleet_ = *std::move(fleet);
        members = fleet_.members;
      }
      check_fleet();
      check_wish();
      check_names();
    }
    if (serves_) {
      report_.ok(
          name("takeover"),
          (members && members->size() < 2 ? "there is no second member now; with one, " : "") +
              takeover_text(queue_.options, queue_.session_checks, queue_.hang_timeout));
    }
    return members;
  }

 private:
  [[nodiscard]] std::string name(const char* what) const { return queue_.name + ": " + what; }

  void check_fleet() {
    bool led = true;
    for (const cluster::Finding& finding : cluster::diagnose(fleet_, queue_.name)) {
      const bool of_leaders = finding.kind == "no_leader" || finding.kind == "leader_silent";
      led = led && !of_leaders;
      report_.add(name(of_leaders                                ? "leader"
                       : finding.kind.starts_with("partitions_") ? "partitions"
                                                                 : "members"),
                  finding);
    }
    if (led) report_.ok(name("leader"), leaders_text());
  }

  // "a leads, last seen 3 s ago", "a leads partitions 0-7, b leads partitions 8-15; b is draining"
  [[nodiscard]] std::string leaders_text() const {
    std::string text;
    for (const auto& [leader, partitions] : cluster::partitions_by_leader(locks_)) {
      text += (text.empty() ? "" : ", ") + leader + " leads";
      if (fleet_.partitioned()) text += ' ' + cluster::partitions_text(partitions);
    }
    for (const cluster::Member& member : fleet_.members) {
      const auto seen = parse_rfc3339(member.seen);
      if (!fleet_.partitioned() && member.leads && seen) {
        text += ", last seen " + relative_time(*seen, wall_now());
      }
      if (fleet_.partitioned() && member.draining) text += "; " + member.node + " is draining";
    }
    return text.empty() ? "who leads is not known" : text;
  }

  void check_wish() {
    const std::uint32_t desired_partitions = queue_.options.partitions;
    if (!serves_ || desired_partitions == locks_.count()) return;
    report_.warn(name("partitions"),
                 fmt::format("the queue has {}, and this configuration asks for {}",
                             counted(locks_.count(), "partition"), desired_partitions),
                 "it keeps them until all members ask for another number");
  }

  // A second daemon of the same name is not among the members, since the first holds their entry.
  void check_names() {
    const std::vector<std::string> held = store_.session_names();
    for (const cluster::Member& member : fleet_.members) {
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

  Store& store_;
  const CheckOptions::Queue& queue_;
  const bool serves_;
  const client::Locks& locks_;
  Report& report_;
  cluster::Fleet fleet_;
};

}  // namespace

std::optional<std::vector<cluster::Member>> check_leaders(Store& store,
                                                          const CheckOptions::Queue& queue,
                                                          bool serves, const client::Locks& locks,
                                                          Report& report) {
  return LeaderCheck{store, queue, serves, locks, report}.run();
}

std::string takeover_text(const core::QueueOptions& options,
                          const std::vector<std::string>& session_checks, Duration hang_timeout) {
  // Consul ends a session one to two TTLs after its last renewal (the documentation promises one;
  // 1.8 takes two, consul.md 1.2). That was up to renew_interval ago. The lock-delay follows.
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
