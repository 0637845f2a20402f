#include "cli/member_list.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/time_text.h"
#include "cli/admin_client.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kAskedAtOnce = 16;  // a few threads each

std::string text_of(const json& value, const char* name) {
  const auto it = value.find(name);
  if (it == value.end() || it->is_null()) return {};
  return it->is_string() ? it->get<std::string>() : it->dump();
}

bool is_loopback_url(std::string_view url) {
  return url.starts_with("http://127.") || url.starts_with("http://[::1]") ||
         url.starts_with("http://localhost:");
}

Member member_of(std::string name, const std::string& value) {
  Member member;
  member.node = std::move(name);
  const auto parsed = wire::parse_json(value);
  if (!parsed || !parsed->is_object()) return member;
  if (const std::string node = text_of(*parsed, "node"); !node.empty()) member.node = node;
  member.host = text_of(*parsed, "host");
  member.pid = text_of(*parsed, "pid");
  member.version = text_of(*parsed, "version");
  member.since = text_of(*parsed, "since");
  member.seen = text_of(*parsed, "seen");
  const json admin = parsed->value("admin", json::array());
  for (const json& url : admin.is_array() ? admin : json::array({admin})) {
    if (url.is_string() && !url.get<std::string>().empty()) member.admin.push_back(url);
  }
  return member;
}

}  // namespace

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout) {
  const std::string& prefix = layout.members_prefix;
  auto listed = store.list(prefix);
  if (!listed) return tl::unexpected(std::move(listed.error()));
  const auto lock = store.get(layout.leader_key);
  std::string leader;
  if (lock && *lock && !(*lock)->session.empty()) {
    const auto value = wire::parse_json((*lock)->value);
    if (value && value->is_object()) leader = text_of(*value, "node");
  }
  std::vector<Member> members;
  for (const wire::KvEntry& entry : listed->entries) {
    // Without a session it is no daemon's: somebody wrote it by hand.
    if (entry.key.ends_with('/') || entry.session.empty()) continue;
    members.push_back(member_of(entry.key.substr(prefix.size()), entry.value));
    members.back().leads = !leader.empty() && members.back().node == leader;
  }
  return members;
}

std::optional<Member> read_member(Store& store, const wire::Layout& layout,
                                  const std::string& node) {
  if (node.empty()) return std::nullopt;
  const auto entry = store.get(layout.members_prefix + node);
  if (!entry || !*entry) return std::nullopt;
  return member_of(node, (*entry)->value);
}

Reach reach_of(const Member& member, std::string_view own_host) {
  Reach reach;
  const bool here = member.host == own_host;
  for (const std::string& url : member.admin) {
    if (here || (!is_loopback_url(url) && !url.starts_with("unix:"))) {
      reach.addresses.push_back(url);
    }
  }
  if (!reach.addresses.empty()) return reach;
  reach.why_not = member.admin.empty()
                      ? "its admin face is switched off; set admin.listen there"
                      : "its admin face listens on its own host's loopback only; set admin.listen "
                        "there to an address that can be reached from here, or ask on that host";
  return reach;
}

Pulse pulse_of(const Member& member, std::chrono::milliseconds limit) {
  const Reach reach = reach_of(member, host_name());
  if (reach.addresses.empty()) return {};
  auto face = AdminClient::open(reach.addresses, limit);
  if (!face) return {};
  const auto healthy = face->get("/healthz");
  if (healthy || healthy.error().code != ErrorCode::kUnavailable) return {true, {}};
  return {false, "its daemon does not answer: " + healthy.error().message};
}

std::vector<Pulse> pulses_of(const std::vector<Member>& members) {
  std::vector<Pulse> pulses(members.size());
  std::atomic<std::size_t> next = 0;
  const auto ask = [&] {
    for (std::size_t i = next++; i < members.size(); i = next++) {
      pulses[i] = pulse_of(members[i], kGlance);
    }
  };
  std::vector<std::jthread> askers;
  while (askers.size() < std::min(members.size(), kAskedAtOnce)) askers.emplace_back(ask);
  askers.clear();  // waits for them
  return pulses;
}

std::string doubt_of(const Member& member, const Pulse& pulse) {
  const auto seen = parse_rfc3339(member.seen);
  const WallTime now = wall_now();
  const std::string last = seen ? "last seen " + relative_time(*seen, now) : std::string{};
  if (!pulse.silence.empty()) return pulse.silence + (seen ? "; " + last : last);
  return seen && now - *seen > kSilent ? "was " + last : std::string{};
}

}  // namespace lictor::cli
