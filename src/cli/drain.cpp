// Emptying a host: drain, undrain.
//
// The request is a key beside the member's entry, members/<node>/drain, and not a message to its
// daemon: it holds over a restart of that daemon, and a daemon that is down obeys it when it comes
// back. The member gives its partitions away one by one, each when its jobs have ended; others take
// them.
//
//   drain --> key written --> host leads fewer and fewer --> none: "--wait" ends
//                  |
//   undrain -------+ key deleted: a waiting drain fails; the others give the host its share again

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "client/control.h"
#include "client/retry.h"
#include "client/task_id.h"
#include "cluster/member.h"

namespace lictor::cli {
namespace {

struct DrainOptions {
  std::string host;  // a member's name
  bool wait = false;
  std::optional<Duration> wait_timeout;
};

// The name becomes a part of a key, so it must not reach into another one.
Result<void> check_host(const std::string& host) {
  if (!host.empty() && host.find('/') == std::string::npos && client::key_fault(host).empty()) {
    return {};
  }
  return fail(ErrorCode::kInvalid, "HOST: expected a member's name, got \"" + excerpt(host) + '"');
}

Error no_member(const Client& client, const std::string& host,
                const std::vector<cluster::Member>& members) {
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const cluster::Member& member : members) names.emplace_back(member.node);
  const std::string near = nearest(host, names);
  return {ErrorCode::kNotFound,
          fmt::format("no member {} in queue \"{}\" ({}){}", printable(host), client.queue,
                      client.layout.members_prefix,
                      names.empty()  ? "; no daemon is up"
                      : near.empty() ? fmt::format("; the members are {}", fmt::join(names, ", "))
                                     : "; did you mean " + near + '?')};
}

cluster::Partitions held_by(const client::Locks& locks, const std::string& host) {
  auto held = cluster::partitions_by_leader(locks);
  return std::move(held[host]);
}

// Reports that no other member can take what the host gives away.
void report_if_alone(const Client& client, const std::string& host,
                     const std::vector<cluster::Member>& members) {
  if (std::any_of(members.begin(), members.end(), [&](const cluster::Member& member) {
        return member.node != host && !member.draining;
      })) {
    return;
  }
  client.console.report_error("no other member takes partitions: the tasks of those that " + host +
                              " gives away wait until one does");
}

// `changed`: false if the host was drained already, or not drained.
void print_drain(const Client& client, const std::string& host, bool changed, bool draining,
                 const cluster::Partitions& partitions) {
  if (!client.json) return;
  print_json(
      client,
      {{"node", host}, {"changed", changed}, {"draining", draining}, {"partitions", partitions}});
}

// Waits until the host leads nothing. It may have taken a partition just before it saw the request.
Result<void> wait_until_empty(const Client& client, const std::string& host,
                              const std::optional<Duration>& timeout) {
  const Instant until = timeout ? boot_now() + *timeout : Instant::max();
  cluster::Partitions held;
  for (;;) {
    const auto draining = client::is_draining(client.store, client.layout, host);
    if (draining && !*draining) {
      return fail(ErrorCode::kConflict,
                  "\"lictor undrain " + host + "\" ended the drain meanwhile");
    }
    auto locks = client::read_locks(client.store, client.layout);
    if (!locks && !client::is_temporary(locks.error())) {
      return tl::unexpected(std::move(locks.error()));
    }
    if (locks) held = held_by(*locks, host);
    if (locks && held.empty()) return {};
    const Instant now = boot_now();
    if (now >= until) {
      return fail(ErrorCode::kFailed,
                  fmt::format("{} still leads {} after {}: it gives them away, each when its jobs "
                              "have ended (drain_timeout); \"lictor members\" tells whether it "
                              "answers; the request stands",
                              host, held.empty() ? "partitions" : cluster::partitions_text(held),
                              format_duration(*timeout)));
    }
    if (!locks) {
      client::pause_before_retry();
      continue;
    }
    client.console.progress(host + " still leads " + cluster::partitions_text(held));
    client::wait_for_change(client.store, client.layout, (*locks)[held.front()],
                            std::min(until - now, client::kRereadLocks));
  }
}

// Errors: kInvalid, the queue has one partition; kNotFound, there is no such member; kFailed, the
// host still leads partitions after the timeout.
Result<int> drain(const Client& client, const DrainOptions& options) {
  const std::string& host = options.host;
  if (auto checked = check_host(host); !checked) return tl::unexpected(checked.error());
  LICTOR_TRY(const auto locks, client::read_locks(client.store, client.layout));
  if (locks.count() == 1) {
    return fail(ErrorCode::kInvalid,
                fmt::format("queue \"{}\" has one partition, so nothing can be drained; to move "
                            "leadership, use \"lictor leader --step-down\"",
                            client.queue));
  }
  LICTOR_TRY(const auto members, cluster::read_members(client.store, client.layout, locks));
  const cluster::Member* member = cluster::find_member(members, host);
  if (member == nullptr) return tl::unexpected(no_member(client, host, members));
  LICTOR_TRY(const bool changed, client::begin_drain(client.store, client.layout, host));
  report_if_alone(client, host, members);
  const cluster::Partitions& held = member->partitions;
  if (!client.json) {
    client.console.print_line(client.console.suggesting(fmt::format(
        "{} is {}draining: it leads {}, and takes none until \"lictor undrain {}\"", host,
        changed ? "" : "already ",
        held.empty()
            ? "no partition"
            : cluster::partitions_text(held) +
                  (held.size() == 1 ? ", which it gives away when its jobs have ended"
                                    : ", which it gives away, each when its jobs have ended"),
        host)));
    if (!held.empty()) {
      client.console.print_line(
          "jobs that still run after drain_timeout are stopped, and run again elsewhere");
    }
  }
  if (!options.wait) {
    print_drain(client, host, changed, true, held);
    return kDone;
  }
  auto emptied = wait_until_empty(client, host, options.wait_timeout);
  client.console.end_progress();
  const auto now = client::read_locks(client.store, client.layout);
  print_drain(client, host, changed, true, now ? held_by(*now, host) : held);
  if (!emptied) return tl::unexpected(std::move(emptied.error()));
  if (!client.json) client.console.print_line(host + " leads no partition");
  return kDone;
}

// Errors: kNotFound, there is neither such a member nor a drain to end. The host may be no member
// now: the key outlives its daemon, and would empty the host when the daemon comes back.
Result<int> undrain(const Client& client, const std::string& host) {
  if (auto checked = check_host(host); !checked) return tl::unexpected(checked.error());
  LICTOR_TRY(const bool changed, client::end_drain(client.store, client.layout, host));
  const client::Locks locks =
      client::locks_if_known(client::read_locks(client.store, client.layout));
  LICTOR_TRY(const auto members, cluster::read_members(client.store, client.layout, locks));
  const cluster::Member* member = cluster::find_member(members, host);
  if (!changed && member == nullptr) return tl::unexpected(no_member(client, host, members));
  print_drain(client, host, changed, false,
              member != nullptr ? member->partitions : cluster::Partitions{});
  if (client.json) return kDone;
  client.console.print_line(
      !changed ? host + " is not draining"
      : member == nullptr
          ? host + " is no longer to be drained; it is no member now"
          : host + " takes partitions again: the others give it its share, one at a time");
  return kDone;
}

}  // namespace

void add_drain(Commands& to) {
  auto [command, options] = to.add(
      "drain", "Make a host give all its partitions away",
      R"(HOST is a member's name. It gives its partitions to the other members, each when its jobs have
ended; jobs that still run after drain_timeout are stopped and run again elsewhere. It takes none
until "lictor undrain HOST", also after a restart. With --wait the exit code is 1 if it still leads
one after --wait-timeout. A queue with one partition has nothing to drain (exit code 2): use
"lictor leader --step-down".

Examples:
  lictor drain host-a
  lictor drain host-a --wait --wait-timeout 10m && ssh host-a reboot
)",
      drain);
  command.argument("HOST", options.host, "The member's name").required();
  const Option wait =
      command.flag("--wait", options.wait, "Wait until the host leads no partition");
  command
      .duration("--wait-timeout", options.wait_timeout, "Stop waiting after this, with exit code 1")
      .needs(wait);
}

void add_undrain(Commands& to) {
  auto [command, host] = to.add(
      "undrain", "Let a host take partitions again",
      R"(HOST is a member's name, or one that left while it was draining. The others give it its share, one
partition at a time.

Examples:
  lictor undrain host-a
  lictor undrain host-a --json | jq .changed
)",
      undrain);
  command.argument("HOST", host, "The member's name").required();
}

}  // namespace lictor::cli
