// Shows the leaders, and moves leadership.
//
// --step-down writes one request into the control key, which all leaders of the queue act on, and
// waits until each partition that was led has changed hands:
//
//   waiting --the leader's jobs end (drain_timeout)--> released --another daemon--> moved
//      |                                                  |
//      |                                                  +--the same daemon--> kept: a failure
//      +--time-out: the request stands, and the leader goes on with it
//
// A lock is compared by its session and by "since", the time of the acquisition: a leader that
// stepped down and leads again has the same session. Blocking queries on one lock and a reading of
// all every two seconds tell the changes.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "client/retry.h"
#include "cluster/admin_client.h"
#include "cluster/succession.h"

namespace lictor::cli {
namespace {

using client::Locks;
using nlohmann::ordered_json;

struct LeaderOptions {
  bool step_down = false;
  bool wait = true;
  Duration timeout = std::chrono::seconds{30};
};

// "held", "free", "unknown": it may not be read.
std::string state_of(const client::LockView& lock) {
  if (!lock.known) return "unknown";
  return lock.session.empty() ? "free" : "held";
}

// Returns a member without fields if the holder is not among the members.
cluster::Member holder_of(const client::LockView& lock,
                          const std::vector<cluster::Member>& members) {
  const cluster::Member* member = cluster::find_member(members, lock.name());
  return member == nullptr ? cluster::Member{} : *member;
}

// Adds the fields that describe a lock.
ordered_json lock_json(ordered_json out, const Client& client, const client::LockView& lock,
                       const cluster::Member& holder) {
  const bool held = !lock.session.empty();
  out["lock"] = state_of(lock);
  // "started" is the daemon's start, "since" the start of its leadership.
  for (const char* name : {"node", "host", "pid", "admin", "version", "started", "since"}) {
    out[name] = held ? lock.value.value(name, nlohmann::json{}) : nlohmann::json{};
  }
  out["seen"] = text_or_null(holder.seen);
  out["answers"] = holder.answers ? ordered_json(*holder.answers) : ordered_json{};
  out["session"] = text_or_null(lock.session);
  out["key"] = client.layout.lock_key(lock.partition);
  out["modify_index"] = lock.index;
  return out;
}

// Prints the leader of a queue with one partition.
void print_leader(const Client& client, const client::LockView& lock,
                  const cluster::Member& holder) {
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) client.console.print_line(fmt::format("{:<10}{}", name, value));
  };
  const auto since = [&](const char* name, const std::string& label) {
    std::string text = lock.text(name);
    const auto time = parse_rfc3339(text);
    if (text.empty()) return text;
    return label + text + (time ? " (" + relative_time(*time, wall_now()) + ")" : "");
  };
  line("queue", client.queue);
  for (const char* name : {"node", "host", "pid", "admin", "version"}) line(name, lock.text(name));
  line("daemon", since("started", "started "));
  line("leads", since("since", "since "));
  if (const auto time = parse_rfc3339(holder.seen)) line("seen", relative_time(*time, wall_now()));
  if (holder.answers) line("answers", *holder.answers ? "yes" : "no");
  line("lock", "held (" + client.layout.leader_key + ")");
  const auto session = client.store.session(lock.session);
  line("session",
       session ? fmt::format("{} on Consul's node {}{}, lock-delay {}", lock.session, session->node,
                             session->ttl.empty() ? "" : ", TTL " + session->ttl,
                             format_duration(session->lock_delay))
               : lock.session +
                     " (gone, or hidden: its node and TTL need the rule session_prefix "
                     R"("" { policy = "read" }))");
}

void print_leaders(const Client& client, const Locks& locks) {
  Table table{{"PARTITION", "LEADER", "SINCE", "LOCK"}};
  for (const client::LockView& lock : locks) {
    const bool held = !lock.session.empty();
    const auto since = parse_rfc3339(held ? lock.text("since") : "");
    table.add_row({{std::to_string(lock.partition.number)},
                   {lock.name()},
                   {since ? relative_time(*since, wall_now()) : ""},
                   {state_of(lock), held ? Style::kGreen : Style::kRed}});
  }
  client.console.print(table.render(client.console.width()));
}

// Errors: kNotFound, nobody leads some partition.
Result<int> show_leaders(const Client& client, const Locks& locks) {
  const bool single = locks.count() == 1;
  const bool led = !cluster::partitions_by_leader(locks).empty();
  std::vector<cluster::Member> leaders;
  if (led) leaders = cluster::read_members(client.store, client.layout, locks).value_or(leaders);
  std::erase_if(leaders, [](const cluster::Member& member) { return !member.leads; });
  cluster::ask_all(leaders);
  for (const std::string& line : cluster::doubtful_leaders(client.stored(), locks, leaders)) {
    client.json ? client.console.report_error(line)
                : client.console.print_line(client.console.suggesting(line));
  }
  if (client.json && single) {
    print_json(client, lock_json({}, client, locks[0], holder_of(locks[0], leaders)));
  } else if (client.json) {
    const auto out = [&](const client::LockView& lock) {
      return lock_json({{"partition", lock.partition.number}}, client, lock,
                       holder_of(lock, leaders));
    };
    print_json(client, {{"partitions", json_list(locks, out)}});
  } else if (!single) {
    print_leaders(client, locks);
  } else if (led) {
    print_leader(client, locks[0], holder_of(locks[0], leaders));
  }
  if (auto error = cluster::nobody_leads(client.stored(), locks))
    return tl::unexpected(*std::move(error));
  return kDone;
}

// The partitions that were led when the leaders were asked, and have no other leader now.
struct Handover {
  cluster::Partitions waiting;   // still with the leader that was asked
  cluster::Partitions released;  // with nobody
  cluster::Partitions kept;      // with the same leader again
};

Handover handover_of(const Locks& before, const Locks& now) {
  Handover handover;
  for (std::uint32_t i = 0; i < before.count(); ++i) {
    if (before[i].session.empty()) continue;
    if (now[i].session.empty()) {
      handover.released.push_back(i);
    } else if (now[i].session == before[i].session) {
      const bool again = now[i].text("since") != before[i].text("since");
      (again ? handover.kept : handover.waiting).push_back(i);
    }
  }
  return handover;
}

// Prints, for each partition that was led, which daemon stepped down and which one leads now. Also
// prints after a failed wait.
void print_handover(const Client& client, const Locks& before, const Locks& now,
                    const Handover& handover) {
  ordered_json all = ordered_json::array();
  for (const client::LockView& lock : before) {
    if (lock.session.empty()) continue;
    const std::uint32_t i = lock.partition.number;
    const bool waits = std::binary_search(handover.waiting.begin(), handover.waiting.end(), i);
    ordered_json out = before.count() == 1 ? ordered_json{} : ordered_json{{"partition", i}};
    out["stepped_down"] = waits ? ordered_json{} : ordered_json(lock.name());
    out["leader"] = text_or_null(now[i].name());
    all.push_back(std::move(out));
  }
  print_json(client, before.count() == 1 ? all[0] : ordered_json{{"partitions", all}});
}

// "leadership", of several partitions "partitions 0-3".
std::string named(const Locks& locks, const cluster::Partitions& partitions) {
  return locks.count() == 1 ? "leadership" : cluster::partitions_text(partitions);
}

// Says why not all partitions have changed hands within the time.
std::string not_moved(const Locks& before, const Handover& handover, const std::string& within) {
  const bool single = before.count() == 1;
  std::vector<std::string> parts;
  if (!handover.waiting.empty()) {
    parts.push_back(fmt::format(
        "{} still with {}{}, whose jobs may be ending (drain_timeout); the request stands",
        named(before, handover.waiting), single ? before[0].name() : "the old leaders", within));
  }
  if (!handover.released.empty()) {
    parts.push_back(named(before, handover.released) + " taken by nobody" + within);
  }
  if (!handover.kept.empty()) {
    parts.push_back(named(before, handover.kept) + " with the same leader again");
  }
  const bool taken = handover.released.empty() && handover.kept.empty();
  return fmt::format("{}: {}{}",
                     single ? "leadership has not moved" : "not all partitions have changed hands",
                     fmt::join(parts, "; "), taken ? "" : "; is another daemon up?");
}

// Waits until each partition that was led has changed hands. Errors: kFailed, not all did.
Result<int> wait_for_handover(const Client& client, const Locks& before, Duration timeout) {
  const Instant until = boot_now() + timeout;
  Locks now = before;
  for (;;) {
    auto read = client::read_locks(client.store, client.layout);
    if (!read && !client::is_temporary(read.error())) return tl::unexpected(read.error());
    if (read && read->count() != before.count()) {
      return fail(ErrorCode::kConflict,
                  fmt::format("the number of partitions changed from {} to {} meanwhile",
                              before.count(), read->count()));
    }
    if (read) now = *std::move(read);
    const Handover handover = handover_of(before, now);
    const cluster::Partitions& open =
        handover.waiting.empty() ? handover.released : handover.waiting;
    if (open.empty() || boot_now() >= until) {
      if (client.json) print_handover(client, before, now, handover);
      if (!open.empty() || !handover.kept.empty()) {
        const std::string within = " within " + format_duration(timeout);
        return fail(ErrorCode::kFailed, not_moved(before, handover, within));
      }
      if (!client.json && before.count() == 1) {
        client.console.print_line(before[0].name() + " stepped down; " + now[0].name() + " leads");
      } else if (!client.json) {
        print_leaders(client, now);
      }
      return kDone;
    }
    client.console.progress(named(before, open) + (handover.waiting.empty()
                                                       ? ": nobody has taken it yet"
                                                       : " still there; jobs may be ending"));
    client::wait_for_change(client.store, client.layout, now[open.front()],
                            std::min(until - boot_now(), client::kRereadLocks));
  }
}

// Asks all leaders to hand over.
Result<int> step_down(const Client& client, const Locks& locks, const LeaderOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, partitions] : cluster::partitions_by_leader(locks)) names.push_back(name);
  if (names.empty()) {
    LICTOR_TRY([[maybe_unused]] const int shown, show_leaders(client, locks));
    return fail(ErrorCode::kPermissionDenied,
                "who leads is not known: the token may not read the locks");
  }
  // A leader that steps down waits a while and leads again if nobody else does.
  const auto members = cluster::read_members(client.store, client.layout, locks);
  if (names.size() == 1 && members && members->size() == 1 && members->front().leads) {
    client.console.report_error("no other daemon is up to take leadership from " + names.front());
  }
  if (auto asked = client.api.step_down(); !asked) return tl::unexpected(asked.error());
  if (options.wait) {
    auto code = wait_for_handover(client, locks, options.timeout);
    client.console.end_progress();
    return code;
  }
  if (client.json) {
    print_json(client,
               {{"asked", locks.count() == 1 ? ordered_json(names.front()) : ordered_json(names)}});
  } else {
    client.console.print_line(fmt::format("{} {} asked to step down", fmt::join(names, ", "),
                                          names.size() == 1 ? "is" : "are"));
  }
  return kDone;
}

Result<int> leader(const Client& client, const LeaderOptions& options) {
  LICTOR_TRY(const auto locks, client::read_locks(client.store, client.layout));
  return options.step_down ? step_down(client, locks, options) : show_leaders(client, locks);
}

}  // namespace

void note_if_not_led(const Client& client) {
  const auto locks = client::read_locks(client.store, client.layout);
  if (!locks) return;
  if (const auto error = cluster::nobody_leads(client.stored(), *locks))
    client.console.note(error->message);
}

void add_leader(Commands& to) {
  auto [command, options] = to.add("leader", "Show who leads the queue, or move leadership",
                                   R"(The exit code is 3 if nobody leads.

Where the queue has several partitions, each has its leader: one line shows each, and the exit code
is 3 if one has none. --step-down asks all leaders, waits until each of their partitions has another
leader, and fails if one has not. Afterwards the daemons give each partition back to the host that it
belongs to. "lictor drain" empties a host.

Examples:
  lictor leader
  lictor leader --step-down               and wait until another one leads
  lictor leader --step-down --no-wait
)",
                                   leader);
  const Option step_down = command.flag("--step-down", options.step_down,
                                        "Ask the leader to hand over, and wait for it");
  const Option no_wait =
      command.flag("--no-wait", options.wait, "Ask without waiting", false).needs(step_down);
  command.duration("--timeout", options.timeout, "Stop waiting after this (default: 30s)")
      .needs(step_down)
      .excludes(no_wait);
}

}  // namespace lictor::cli
