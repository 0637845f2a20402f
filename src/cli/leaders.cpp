#include "cli/leaders.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/json_output.h"
#include "cli/members.h"
#include "cli/partitions.h"
#include "cli/process.h"
#include "cli/takeover.h"
#include "client/retry.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

// So often the locks are listed while one of them does not change.
constexpr Duration kLookEvery = std::chrono::seconds{2};

// "held", "free", "unknown": it may not be read.
std::string state_of(const client::Locks& locks, std::uint32_t partition) {
  if (!locks.leader(partition).known) return "unknown";
  return locks.leader(partition).session.empty() ? "free" : "held";
}

ordered_json json_of(const Client& client, const client::Locks& locks, std::uint32_t partition,
                     const std::vector<Member>& members, const std::vector<Pulse>& pulses) {
  const Lock lock = lock_of(locks, partition);
  const bool held = !lock.session.empty();
  ordered_json told{{"partition", partition}, {"lock", state_of(locks, partition)}};
  for (const char* name : {"node", "host", "pid", "admin", "version", "started", "since"}) {
    told[name] = held ? lock.value.value(name, nlohmann::json{}) : nlohmann::json{};
  }
  told["seen"] = nullptr;
  told["answers"] = nullptr;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].node != lock.name()) continue;
    told["seen"] = text_or_null(members[i].seen);
    if (pulses[i].answers) told["answers"] = *pulses[i].answers;
  }
  told["session"] = text_or_null(lock.session);
  told["key"] = client.layout.lock_key(lock.partition);
  told["modify_index"] = lock.index;
  return told;
}

Table table_of(const client::Locks& locks) {
  Table table{{"PARTITION", "LEADER", "SINCE", "LOCK"}};
  for (std::uint32_t i = 0; i < locks.count(); ++i) {
    const Lock lock = lock_of(locks, i);
    const bool held = !lock.session.empty();
    const auto since = parse_rfc3339(held ? lock.text("since") : "");
    table.add_row({{std::to_string(i)},
                   {lock.name()},
                   {since ? relative_time(*since, wall_now()) : ""},
                   {state_of(locks, i), held ? Style::kGreen : Style::kRed}});
  }
  return table;
}

// What became of the partitions that were led when the leaders were asked to hand over.
struct Handover {
  Partitions waiting;   // still with the leader that was asked
  Partitions released;  // with nobody
  Partitions kept;      // with the same leader again
  Partitions moved;
};

Handover handover_of(const client::Locks& before, const client::Locks& now) {
  Handover handover;
  for (std::uint32_t i = 0; i < before.count(); ++i) {
    const Lock asked = lock_of(before, i);
    const Lock lock = lock_of(now, i);
    if (asked.session.empty()) continue;
    Partitions& place = lock.session.empty()                        ? handover.released
                        : lock.session != asked.session             ? handover.moved
                        : lock.text("since") != asked.text("since") ? handover.kept
                                                                    : handover.waiting;
    place.push_back(i);
  }
  return handover;
}

void tell_json(const Client& client, const client::Locks& before, const client::Locks& now,
               const Handover& handover) {
  if (!client.json) return;
  ordered_json all = ordered_json::array();
  for (std::uint32_t i = 0; i < before.count(); ++i) {
    const std::string asked = lock_of(before, i).name();
    if (asked.empty()) continue;
    const bool waits = std::binary_search(handover.waiting.begin(), handover.waiting.end(), i);
    all.push_back({{"partition", i},
                   {"stepped_down", waits ? ordered_json{} : ordered_json(asked)},
                   {"leader", text_or_null(lock_of(now, i).name())}});
  }
  client.console.print(json_document({{"queue", client.queue}, {"partitions", std::move(all)}}));
}

Error not_moved(const Handover& handover, Duration timeout) {
  const std::string within = " within " + format_duration(timeout);
  std::vector<std::string> parts;
  if (!handover.waiting.empty()) {
    parts.push_back(partitions_text(handover.waiting) + " still with the old leaders" + within +
                    ", whose jobs may be ending (drain_timeout); the request stands");
  }
  if (!handover.released.empty()) {
    parts.push_back(partitions_text(handover.released) + " led by nobody" + within);
  }
  if (!handover.kept.empty()) {
    parts.push_back(partitions_text(handover.kept) + " with the same leader again");
  }
  const bool taken = handover.released.empty() && handover.kept.empty();
  return {ErrorCode::kFailed,
          fmt::format("not all partitions have changed hands: {}{}", fmt::join(parts, "; "),
                      taken ? "" : "; is another daemon up?")};
}

Result<int> wait_for_all(const Client& client, const client::Locks& before, Duration timeout) {
  const Instant until = boot_now() + timeout;
  client::Locks now = before;
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
    const std::size_t open = handover.waiting.size() + handover.released.size();
    if (open == 0 || boot_now() >= until) {
      tell_json(client, before, now, handover);
      if (open != 0 || !handover.kept.empty()) return tl::unexpected(not_moved(handover, timeout));
      if (!client.json) client.console.print(table_of(now).render(client.console.width()));
      return kDone;
    }
    client.console.progress(fmt::format("{} of {} partitions have changed hands",
                                        handover.moved.size(),
                                        open + handover.moved.size() + handover.kept.size()));
    const Partitions& open_ones = handover.waiting.empty() ? handover.released : handover.waiting;
    client::wait_for_change(client.store, client.layout, now, open_ones.front(),
                            std::min(until - boot_now(), kLookEvery));
  }
}

}  // namespace

Result<int> show_leaders(const Client& client, const client::Locks& locks) {
  const auto members =
      read_members(client.store, client.layout, locks).value_or(std::vector<Member>{});
  const std::vector<Pulse> pulses = pulses_of(members);
  for (const std::string& line : doubtful_leaders(client, locks, members, pulses)) {
    client.json ? client.console.complain(line) : client.console.print_line(line);
  }
  if (client.json) {
    ordered_json all = ordered_json::array();
    for (std::uint32_t i = 0; i < locks.count(); ++i) {
      all.push_back(json_of(client, locks, i, members, pulses));
    }
    client.console.print(json_document({{"queue", client.queue}, {"partitions", std::move(all)}}));
  } else {
    client.console.print(table_of(locks).render(client.console.width()));
  }
  if (auto error = nobody_leads(client, locks)) return tl::unexpected(*std::move(error));
  return kDone;
}

Result<int> step_down_all(const Client& client, const client::Locks& locks,
                          const LeaderOptions& options) {
  const auto leaders = partitions_by_leader(locks);
  if (leaders.empty()) {
    if (client.json) tell_json(client, locks, locks, {});
    const auto error = nobody_leads(client, locks);
    return error ? Result<int>{tl::unexpected(*error)}
                 : fail(ErrorCode::kPermissionDenied,
                        "who leads is not known: the token may not read the locks");
  }
  if (auto asked = client.api.step_down(); !asked) return tl::unexpected(asked.error());
  if (options.wait) {
    auto code = wait_for_all(client, locks, options.timeout);
    client.console.end_progress();
    return code;
  }
  std::vector<std::string> names;
  names.reserve(leaders.size());
  for (const auto& [name, partitions] : leaders) names.push_back(name);
  if (client.json) {
    client.console.print(json_document({{"queue", client.queue}, {"asked", names}}));
  } else {
    client.console.print_line(fmt::format("{} {} asked to step down", fmt::join(names, ", "),
                                          names.size() == 1 ? "is" : "are"));
  }
  return kDone;
}

}  // namespace lictor::cli
