// The daemons of a queue. Consul names them and the partitions that they lead. Their admin APIs
// show whether they live, since the entry of a dead daemon stays until its session ends.

#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/command_table.h"
#include "cli/json_output.h"
#include "client/retry.h"
#include "cluster/admin_client.h"
#include "cluster/member.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

// "0-3,7 (5)"
std::string held_text(const cluster::Member& member) {
  if (member.partitions.empty()) return "none";
  return fmt::format("{} ({})", cluster::ranges(member.partitions), member.partitions.size());
}

// `single`: the queue has one partition.
Table table_of(const std::vector<cluster::Member>& members, bool single) {
  const auto time_text = [now = wall_now()](const std::string& text) {
    const auto time = parse_rfc3339(text);
    return time ? relative_time(*time, now) : text;
  };
  Table table{{"NODE", "HOST", "PID", "VERSION", "ADMIN", "SINCE", "SEEN", "ANSWERS", "STATE",
               single ? "LEADS" : "PARTITIONS"}};
  for (const cluster::Member& member : members) {
    const bool silent = !member.silence.empty();
    const bool drains = member.draining && !single;
    table.add_row({{member.node},
                   {member.host},
                   {member.pid},
                   {member.version},
                   {member.admin.empty() ? "off" : fmt::format("{}", fmt::join(member.admin, " "))},
                   {time_text(member.since)},
                   {time_text(member.seen)},
                   {silent           ? "no"
                    : member.answers ? "yes"
                                     : "",
                    silent ? Style::kRed : Style::kPlain},
                   {drains ? "draining" : "", Style::kYellow},
                   {!single        ? held_text(member)
                    : member.leads ? "leads"
                                   : "",
                    member.leads ? Style::kGreen : Style::kPlain}});
  }
  return table;
}

// A leader without an entry is a daemon that has just come, or one whose token may not write it.
void note_no_members(const Client& client, const client::Locks& locks) {
  const auto leaders = cluster::partitions_by_leader(locks);
  client.console.note(fmt::format(
      "no members in queue \"{}\" ({}){}", client.queue, client.layout.members_prefix,
      leaders.empty() ? R"(; start one with "lictor run")"
                      : ", though " + leaders.begin()->first +
                            " leads: a daemon's entry may come seconds after it "
                            "starts to lead; if it does not, the daemon's log says why"));
}

Result<int> members(const Client& client) {
  auto read = client::read_locks(client.store, client.layout);
  if (!read && client::is_temporary(read.error())) return tl::unexpected(std::move(read.error()));
  if (!read && read.error().code == ErrorCode::kInvalid) {
    client.console.report_error(read.error().message);
  }
  const bool known = read.has_value();
  const client::Locks locks = client::locks_if_known(std::move(read));
  LICTOR_TRY(auto members, cluster::read_members(client.store, client.layout, locks));
  cluster::ask_all(members);
  if (client.json) {
    const auto to_json = [&](const cluster::Member& member) {
      return cluster::member_json(member, client.queue);
    };
    print_json(client, {{"partitions", known ? ordered_json(locks.count()) : ordered_json{}},
                        {"free", cluster::free_partitions(locks)},
                        {"members", json_list(members, to_json)}});
    return kDone;
  }
  if (members.empty()) {
    note_no_members(client, locks);
    return kDone;
  }
  client.console.print(table_of(members, locks.count() == 1).render(client.console.width()));
  const cluster::Partitions free = cluster::free_partitions(locks);
  if (locks.count() > 1 && !free.empty()) {
    client.console.note(fmt::format("nobody leads {}; \"lictor leader\" says who takes {}",
                                    cluster::partitions_text(free),
                                    free.size() == 1 ? "it" : "them"));
  }
  return kDone;
}

}  // namespace

void add_members(Commands& to) {
  to.add(
      "members", "List the daemons that take part",
      R"(Where the queue has several partitions: also which of them each member leads, which members are
draining, and which partitions are free.

Examples:
  lictor members
  lictor members --json | jq -r .members[].admin[0]
)",
      members);
}

}  // namespace lictor::cli
