#include "cli/members.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/listing.h"
#include "cli/process.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kAskedAtOnce = 16;  // a few threads each

bool is_loopback_url(std::string_view url) {
  return url.starts_with("http://127.") || url.starts_with("http://[::1]") ||
         url.starts_with("http://localhost:");
}

Member member_of(std::string name, const std::string& value) {
  Member member{std::move(name)};
  const auto parsed = wire::parse_json(value);
  if (!parsed || !parsed->is_object()) return member;
  if (const std::string node = text_of(*parsed, "node"); !node.empty()) member.node = node;
  member.host = text_of(*parsed, "host");
  member.pid = text_of(*parsed, "pid");
  member.version = text_of(*parsed, "version");
  member.since = text_of(*parsed, "since");
  member.config = text_of(*parsed, "config");
  member.reload_error = text_of(*parsed, "reload_error");
  const json parts = parsed->value("parts", json::object());
  for (const auto& [part, digest] : parts.items()) {
    if (digest.is_string()) member.parts.emplace(part, digest);
  }
  member.seen = text_of(*parsed, "seen");
  const json admin = parsed->value("admin", json::array());
  for (const json& url : admin.is_array() ? admin : json::array({admin})) {
    if (url.is_string() && !url.get<std::string>().empty()) member.admin.push_back(url);
  }
  return member;
}

}  // namespace

Result<AdminClient> AdminClient::open(std::vector<std::string> addresses,
                                      std::chrono::milliseconds limit, std::string token) {
  net::Options options;
  options.addresses = std::move(addresses);
  options.server = "a lictor daemon";
  LICTOR_TRY(auto transport, net::Transport::open(std::move(options)));
  return AdminClient{std::move(transport), limit, std::move(token)};
}

Result<std::string> AdminClient::get(std::string target, std::chrono::seconds wait) {
  http::Request request;
  request.target = std::move(target);
  request.timeout = limit_ + wait;
  request.long_poll = wait > 0s;
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  http::Response response = transport_->perform(std::move(request));
  if (response.delivery != http::Delivery::kReplied) {
    const bool connected = response.delivery == http::Delivery::kLost;
    return fail(connected ? ErrorCode::kTimeout : ErrorCode::kUnavailable, response.error);
  }
  if (response.status == 200) return std::move(response.body);
  if (response.status == 401) {
    return fail(ErrorCode::kPermissionDenied,
                response.endpoint +
                    (token_.empty() ? " asks for the admin token"
                                    : " refuses the admin token that was sent") +
                    "; --config must name a file whose admin.token_file holds that daemon's token");
  }
  return fail(response.status == 404   ? ErrorCode::kNotFound
              : response.status == 403 ? ErrorCode::kPermissionDenied
                                       : ErrorCode::kFailed,
              fmt::format("{} answered {} ({})", response.endpoint, response.status,
                          excerpt(response.body, 200)));
}

Result<std::vector<Member>> read_members(Store& store, const wire::Layout& layout) {
  const std::string& prefix = layout.members_prefix;
  LICTOR_TRY(auto listed, store.list(prefix));
  const Lock lock = read_lock(store, layout).value_or(Lock{});
  const std::string leader = lock.session.empty() ? std::string{} : lock.text("node");
  std::vector<Member> members;
  for (const wire::KvEntry& entry : listed.entries) {
    // A daemon's entry is held by a session; somebody wrote this one by hand.
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

std::string Lock::text(const char* field) const { return text_of(value, field); }

std::string Lock::name() const {
  if (session.empty()) return {};
  const std::string node = text("node");
  return node.empty() ? "session " + session : node;
}

Lock lock_of(const std::optional<wire::KvEntry>& entry) {
  Lock lock{{}, json::object(), 0};
  if (!entry) return lock;
  lock.session = entry->session;
  lock.index = entry->modify_index;
  auto value = wire::parse_json(entry->value);
  if (value && value->is_object()) lock.value = std::move(*value);
  return lock;
}

Result<Lock> read_lock(Store& store, const wire::Layout& layout) {
  LICTOR_TRY(const auto entry, store.get(layout.leader_key));
  return lock_of(entry);
}

Reach reach_of(const Member& member, std::string_view own_host) {
  Reach reach;
  for (const std::string& url : member.admin) {
    if (member.host == own_host || (!is_loopback_url(url) && !url.starts_with("unix:"))) {
      reach.addresses.push_back(url);
    }
  }
  if (reach.addresses.empty()) {
    reach.why_not = member.admin.empty()
                        ? "its admin face is switched off; set admin.listen there"
                        : "its admin face listens on its own host's loopback only; set "
                          "admin.listen there to an address that this host can reach, or run this "
                          "on that host";
  }
  return reach;
}

LeaderFace leader_face(const Client& client, std::chrono::milliseconds limit) {
  LeaderFace leader;
  const auto members = read_members(client.store, client.layout);
  if (!members) {
    leader.why_not = members.error().message;
    leader.code = members.error().code;
    return leader;
  }
  const auto member =
      std::find_if(members->begin(), members->end(), [](const Member& each) { return each.leads; });
  if (member == members->end()) {
    const auto lock = read_lock(client.store, client.layout);
    const std::string name = lock ? lock->name() : std::string{};
    leader.why_not = name.empty() ? "no member leads"
                                  : "the leader, " + name +
                                        ", is not among the members, so its address is unknown";
    return leader;
  }
  leader.node = member->node;
  const Reach reach = reach_of(*member, host_name());
  leader.why_not = "the leader, " + member->node + ", could not be asked: " + reach.why_not;
  if (reach.addresses.empty()) return leader;
  if (auto face = AdminClient::open(reach.addresses, limit, client.admin_token)) {
    leader.face = std::move(*face);
  } else {
    leader.why_not += face.error().message;
  }
  return leader;
}

Result<json> ask_why(const Client& client, LeaderFace& leader, const std::string& id) {
  if (!leader.face) return fail(ErrorCode::kFailed, leader.why_not);
  auto answer = leader.face->get("/v1/tasks/" + wire::query_value(id) +
                                 "/why?queue=" + wire::query_value(client.queue));
  if (!answer) return fail(answer.error().code, leader.why_not + answer.error().message);
  auto reasons = wire::parse_json(*answer);
  const bool fits = reasons && reasons->is_array() && !reasons->empty() &&
                    std::all_of(reasons->begin(), reasons->end(),
                                [](const json& reason) { return reason.is_object(); });
  if (!fits) return fail(ErrorCode::kFailed, leader.why_not + "its answer is no list of reasons");
  return *std::move(reasons);
}

namespace {

Result<json> get_json(AdminClient& face, const std::string& target) {
  LICTOR_TRY(const std::string body, face.get(target));
  auto answer = wire::parse_json(body);
  if (!answer) return fail(ErrorCode::kFailed, "the answer is no JSON");
  return *std::move(answer);
}

}  // namespace

Result<json> DaemonFaces::get(const std::string& target) {
  if (face_) {
    if (auto answer = get_json(*face_, target)) return answer;
    face_.reset();
  }
  auto listed = read_members(store_, layout_);
  const std::optional<Error> unlisted = listed ? std::nullopt : std::optional{listed.error()};
  if (unlisted && own_.empty()) return tl::unexpected(*unlisted);
  const std::string host = host_name();
  std::vector<Member> members{{.node = "here", .host = host, .admin = own_}};
  if (listed) members = *std::move(listed);
  const auto rank = [&](const Member& member) {
    return member.host == host ? 0 : member.leads ? 1 : 2;
  };
  std::stable_sort(members.begin(), members.end(),
                   [&](const Member& a, const Member& b) { return rank(a) < rank(b); });
  std::string why_not;
  for (const Member& member : members) {
    const Reach reach = reach_of(member, host);
    std::string why = reach.why_not;
    if (!reach.addresses.empty()) {
      auto face = AdminClient::open(reach.addresses, 2s, token_);
      auto answer = face ? get_json(*face, target) : tl::unexpected(face.error());
      if (answer) {
        face_.emplace(std::move(*face));
        return answer;
      }
      why = answer.error().message;
    }
    why_not += (why_not.empty() ? "" : "; ") + member.node + ": " + why;
  }
  if (unlisted) return tl::unexpected(*unlisted);
  if (why_not.empty()) why_not = "no daemon has registered for queue \"" + queue_ + '"';
  return fail(ErrorCode::kFailed, why_not);
}

void mark_running(const Client& client, std::vector<TaskInfo>& tasks) {
  constexpr std::size_t kMostAsked = 16;
  std::optional<LeaderFace> leader;
  std::size_t asked = 0;
  for (TaskInfo& task : tasks) {
    const bool waits = task.state == TaskState::kWaiting || task.state == TaskState::kScheduled;
    if (!waits || task.modify_index == task.create_index || asked++ == kMostAsked) continue;
    if (!leader) leader = leader_face(client, kGlance);
    const auto reasons = ask_why(client, *leader, task.id);
    if (!reasons) return;
    if (text_of(reasons->front(), "reason") != "running") continue;
    task.state = TaskState::kRunning;
    task.node = leader->node;
  }
}

Pulse pulse_of(const Member& member, std::chrono::milliseconds limit) {
  const Reach reach = reach_of(member, host_name());
  if (reach.addresses.empty()) return {};
  auto face = AdminClient::open(reach.addresses, limit);
  if (!face) return {};
  const auto healthy = face->get("/healthz");
  const std::string where = fmt::format("{}", fmt::join(reach.addresses, ", "));
  if (!healthy && healthy.error().code == ErrorCode::kUnavailable) {
    return {false, "its daemon does not answer: no connection to " + where};
  }
  if (!healthy && healthy.error().code == ErrorCode::kTimeout) {
    return {false, fmt::format("its daemon does not answer: {} takes connections, but does not "
                               "answer within {}",
                               where, format_duration(limit))};
  }
  return {true, {}};
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
  return seen && now - *seen > std::chrono::floor<std::chrono::milliseconds>(kSilent)
             ? "was " + last
             : std::string{};
}

namespace {

// Not known where the token may not list the members. Blocks for kGlance and a request.
Candidates read_candidates(Store& store, const wire::Layout& layout) {
  const auto listed = store.list(layout.members_prefix);
  if (!listed) return std::nullopt;
  std::vector<Member> members;
  for (const wire::KvEntry& entry : listed->entries) {
    if (entry.key.ends_with('/') || entry.session.empty()) continue;
    members.push_back(member_of(entry.key.substr(layout.members_prefix.size()), entry.value));
  }
  // The session of a daemon that died with its lead may outlive the lock by its TTL.
  const std::vector<Pulse> pulses = pulses_of(members);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (doubt_of(members[i], pulses[i]).empty()) names.push_back(members[i].node);
  }
  return names;
}

// "host-b", "host-b or host-c", "host-b, host-c or host-d"
std::string one_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  if (names.size() > kMostNamed) {
    const std::vector<std::string> first(names.begin(), names.begin() + kMostNamed - 1);
    return fmt::format("{} or one of {} more", fmt::join(first, ", "), names.size() - first.size());
  }
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return first.empty() ? names.back()
                       : fmt::format("{} or {}", fmt::join(first, ", "), names.back());
}

}  // namespace

std::string if_dead(Store& store, const wire::Layout& layout, const Lock& lock,
                    const Member& member) {
  Candidates others = read_candidates(store, layout);
  if (others) std::erase(*others, member.node);
  return if_dead(store, lock, member, others);
}

std::string if_dead(Store& store, const Lock& lock, const Member& member,
                    const Candidates& others) {
  std::string gone = "after session_ttl and lock_delay";
  const auto session = store.session(lock.session);
  const Duration ttl =
      session ? parse_duration(session->ttl).value_or(Duration::zero()) : Duration::zero();
  const auto seen = parse_rfc3339(member.seen);
  if (ttl > Duration::zero() && seen) {
    // Consul ends a session one to two TTLs after its last renewal, which was at `seen` or up to a
    // third of the TTL later, but not later than now.
    const Duration since = std::clamp<std::chrono::milliseconds>(wall_now() - *seen, 0ms, 24h);
    const auto left = [&](Duration end) {
      return rounded_duration(std::max<Duration>(end - since, 0s) + session->lock_delay);
    };
    gone = fmt::format("in {} to {}", left(ttl), left(std::min(ttl * 7 / 3, since + 2 * ttl)));
  }
  const std::string next =
      !others ? "another daemon takes over"
      : others->empty()
          ? R"(no other daemon is up ("lictor run" starts one); the next one takes over)"
          : one_of(*others) + " takes over";
  return "it may be dead, frozen or cut off; " + next +
         " within 1s if the daemon died, within hang_timeout + 1s if it hangs, " + gone +
         " if its host is gone";
}

std::string if_free(const Lock& lock, const Candidates& candidates) {
  std::string text;
  if (const std::string last = lock.text("node"); !last.empty()) text = "last: " + last;
  const std::string released = lock.text("released");
  const std::string delay = lock.text("lock_delay");
  const std::string next =
      !candidates           ? "a running daemon takes it"
      : candidates->empty() ? R"(no daemon is up ("lictor run" starts one); the next one takes it)"
                            : one_of(*candidates) + " takes it";
  if (!released.empty()) {
    return text + (text.empty() ? "released at " : ", which released it at ") + released + "; " +
           next;
  }
  return text + (text.empty() ? "" : "; ") + "it was not released: " + next +
         " when the lock-delay has passed" + (delay.empty() ? "" : ", within " + delay);
}

Error nobody_leads(const Client& client, const Lock& lock) {
  std::string text =
      fmt::format("nobody leads queue \"{}\" ({}", client.queue, client.layout.leader_key);
  if (lock.index == 0) {
    text +=
        " does not exist): no daemon has ever led it; if its name is right, start one with "
        "\"lictor run\"";
    return {ErrorCode::kNotFound, std::move(text)};
  }
  text += " is free); " + if_free(lock, read_candidates(client.store, client.layout));
  return {ErrorCode::kNotFound, std::move(text)};
}

std::string lead_trouble(const Client& client) {
  const auto lock = read_lock(client.store, client.layout);
  if (!lock) return {};
  if (lock->session.empty()) return nobody_leads(client, *lock).message;
  const auto member = read_member(client.store, client.layout, lock->text("node"));
  const std::string doubt = member ? doubt_of(*member, pulse_of(*member, kGlance)) : "";
  if (doubt.empty()) return {};
  return fmt::format("{} leads, but {}; {}", lock->name(), doubt,
                     if_dead(client.store, client.layout, *lock, *member));
}

namespace {

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
  const auto time_text = [now = wall_now()](const std::string& text) {
    const auto time = parse_rfc3339(text);
    return time ? relative_time(*time, now) : text;
  };
  Table table{{"NODE", "HOST", "PID", "VERSION", "ADMIN", "SINCE", "SEEN", "ANSWERS", "LEADS"}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    const bool silent = !pulses[i].silence.empty();
    table.add_row({{member.node},
                   {member.host},
                   {member.pid},
                   {member.version},
                   {member.admin.empty() ? "off" : fmt::format("{}", fmt::join(member.admin, " "))},
                   {time_text(member.since)},
                   {time_text(member.seen)},
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
  LICTOR_TRY(const auto members, read_members(client.store, client.layout));
  const std::vector<Pulse> pulses = pulses_of(members);
  if (client.json) {
    ordered_json all = ordered_json::array();
    for (std::size_t i = 0; i < members.size(); ++i) all.push_back(json_of(members[i], pulses[i]));
    client.console.print(json_document({{"queue", client.queue}, {"members", std::move(all)}}));
  } else if (members.empty()) {
    const auto lock = read_lock(client.store, client.layout);
    const std::string leader = lock ? lock->name() : std::string{};
    client.console.note(fmt::format(
        "no members in queue \"{}\" ({}){}", client.queue, client.layout.members_prefix,
        leader.empty() ? R"(; start one with "lictor run")"
                       : ", though " + leader +
                             " leads: a daemon's entry may come seconds after it "
                             "starts to lead; if it does not, the daemon's log says why"));
  } else {
    client.console.print(table_of(members, pulses).render(client.console.width()));
  }
  return kDone;
}

}  // namespace lictor::cli
