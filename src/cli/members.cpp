#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/member_list.h"
#include "cli/process.h"
#include "cli/table.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Member& member, const Pulse& pulse) {
  const ordered_json pid = ordered_json::parse(member.pid, nullptr, false);
  return {{"node", member.node},
          {"host", text_or_null(member.host)},
          {"pid", pid.is_number() ? pid : text_or_null(member.pid)},
          {"version", text_or_null(member.version)},
          {"admin", member.admin},
          {"since", text_or_null(member.since)},
          {"seen", text_or_null(member.seen)},
          {"answers", pulse.answers ? ordered_json(*pulse.answers) : ordered_json{}},
          {"leads", member.leads}};
}

Table table_of(const std::vector<Member>& members, const std::vector<Pulse>& pulses) {
  const WallTime now = wall_now();
  Table table{{"NODE", "HOST", "PID", "VERSION", "ADMIN", "SINCE", "SEEN", "ANSWERS", "LEADS"}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const bool silent = !pulses[i].silence.empty();
    std::string admin;
    for (const std::string& url : member.admin) admin += (admin.empty() ? "" : " ") + url;
    const auto since = parse_rfc3339(member.since);
    const auto seen = parse_rfc3339(member.seen);
    table.add_row({{member.node},
                   {member.host},
                   {member.pid},
                   {member.version},
                   {admin.empty() ? "off" : admin},
                   {since ? relative_time(*since, now) : member.since},
                   {seen ? relative_time(*seen, now) : member.seen},
                   {silent              ? "no"
                    : pulses[i].answers ? "yes"
                                        : "",
                    silent ? Style::kRed : Style::kPlain},
                   {member.leads ? "leads" : "", Style::kGreen}});
  }
  return table;
}

}  // namespace

Result<int> members(const Client& client) {
  LICTOR_TRY(const auto members, read_members(client));
  const std::vector<Pulse> pulses = pulses_of(members);
  if (client.json) {
    ordered_json all = ordered_json::array();
    for (std::size_t i = 0; i < members.size(); ++i) {
      all.push_back(json_of(members[i], pulses[i]));
    }
    client.console.print(json_document({{"queue", client.queue}, {"members", std::move(all)}}));
    return kDone;
  }
  if (members.empty()) {
    const auto lock = read_lock(client.store, client.layout);
    const std::string leader = lock ? lock->name() : std::string{};
    client.console.note("no members in queue \"" + client.queue + "\" (" +
                        client.layout.members_prefix + ')' +
                        (leader.empty() ? R"(; start one with "lictor run")"
                                        : ", though " + leader +
                                              " leads: a daemon's entry may come seconds after "
                                              "its lead; if it does not, the daemon's log says "
                                              "why"));
    return kDone;
  }
  client.console.print(table_of(members, pulses).render(client.console.width()));
  return kDone;
}

}  // namespace lictor::cli
