#include "cluster/admin_client.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/try.h"
#include "client/task_info.h"
#include "wire/layout.h"

namespace lictor::cluster {

using namespace std::chrono_literals;
using client::text_of;
using nlohmann::json;

Result<AdminClient> AdminClient::open(std::vector<std::string> addresses,
                                      std::chrono::milliseconds limit, std::string token) {
  net::Options options;
  options.addresses = std::move(addresses);
  options.server = "a lictor daemon";
  LICTOR_TRY(auto transport, net::Transport::open(std::move(options)));
  return AdminClient{std::move(transport), limit, std::move(token)};
}

http::Response AdminClient::ask(std::string target) {
  http::Request request;
  request.target = std::move(target);
  request.timeout = limit_;
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  return transport_->perform(std::move(request));
}

Result<std::string> AdminClient::get(std::string target) {
  http::Response response = ask(std::move(target));
  if (response.delivery != http::Delivery::kReplied) {
    const bool connected = response.delivery == http::Delivery::kLost;
    return fail(connected ? ErrorCode::kTimeout : ErrorCode::kUnavailable, response.error);
  }
  if (response.status == 200) return std::move(response.body);
  if (response.status == 401) {
    return fail(
        ErrorCode::kPermissionDenied,
        response.endpoint +
            (token_.empty() ? " asks for the admin token"
                            : " refuses the admin token that was sent") +
            "; --config must name a file whose admin.token_file holds that daemon's token, and "
            "that you may read");
  }
  return fail(response.status == 404   ? ErrorCode::kNotFound
              : response.status == 403 ? ErrorCode::kPermissionDenied
                                       : ErrorCode::kFailed,
              fmt::format("{} answered {} ({})", response.endpoint, response.status,
                          excerpt(response.body, 200)));
}

void ask_each(std::size_t count, const std::function<void(std::size_t)>& ask) {
  constexpr std::size_t kAtOnce = 16;  // a few threads each
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) ask(i);
  };
  std::vector<std::jthread> others;
  while (others.size() + 1 < std::min(count, kAtOnce)) others.emplace_back(work);
  work();
}

namespace {

// A loopback address, like a unix socket, is the asking host's own if another host asks.
bool is_loopback_url(std::string_view url) {
  return url.starts_with("http://127.") || url.starts_with("http://[::1]") ||
         url.starts_with("http://localhost:");
}

}  // namespace

Result<std::vector<std::string>> reachable_addresses(const Member& member,
                                                     std::string_view own_host) {
  std::vector<std::string> addresses;
  for (const std::string& url : member.admin) {
    if (member.host == own_host || (!is_loopback_url(url) && !url.starts_with("unix:"))) {
      addresses.push_back(url);
    }
  }
  if (!addresses.empty()) return addresses;
  if (member.version.empty()) {
    return fail(ErrorCode::kFailed,
                "its entry below members/ cannot be read; its daemon writes it again within 10s");
  }
  return fail(ErrorCode::kFailed,
              member.admin.empty()
                  ? "its admin API is switched off; set admin.listen there"
                  : "its admin API listens on its own host's loopback only; set admin.listen there "
                    "to an address that this host can reach, or run this on that host");
}

Result<AdminClient> open_admin(const Member& member, std::chrono::milliseconds limit,
                               const std::string& token) {
  LICTOR_TRY(auto addresses, reachable_addresses(member, host_name()));
  return AdminClient::open(std::move(addresses), limit, token);
}

namespace {

// Fills in `answers`, `silence` and `unready`. A 404 or a 401 is an answer, too: the daemon lives.
void ask(Member& member, std::chrono::milliseconds limit) {
  auto admin = open_admin(member, limit);
  if (!admin) return;
  const auto healthy = admin->get("/healthz");
  const ErrorCode code = healthy ? ErrorCode::kFailed : healthy.error().code;
  const bool no_connection = code == ErrorCode::kUnavailable;
  member.answers = !no_connection && code != ErrorCode::kTimeout;
  if (*member.answers) {
    const http::Response ready = admin->ask("/readyz");
    if (ready.status == 503) member.unready = excerpt(trimmed(ready.body), 200);
    return;
  }
  const std::string where =
      fmt::format("{}", fmt::join(reachable_addresses(member, host_name()).value(), ", "));
  member.silence = no_connection
                       ? "its daemon does not answer: no connection to " + where
                       : fmt::format(
                             "its daemon does not answer: {} takes connections, but does not "
                             "answer within {}",
                             where, format_duration(limit));
}

}  // namespace

Member read_member(client::Store& store, const wire::Layout& layout, const std::string& node,
                   std::chrono::milliseconds limit) {
  if (node.empty()) return {};
  const auto entry = store.get(layout.members_prefix + node);
  if (!entry || !*entry) return {node};
  Member member = member_of(node, (*entry)->value);
  ask(member, limit);
  return member;
}

void ask_all(std::vector<Member>& members, std::chrono::milliseconds limit,
             const std::string& own) {
  ask_each(members.size(), [&](std::size_t i) {
    if (members[i].node == own) {
      members[i].answers = true;
    } else {
      ask(members[i], limit);
    }
  });
}

namespace {

Result<json> get_json(AdminClient& admin, const std::string& target) {
  LICTOR_TRY(const std::string body, admin.get(target));
  auto answer = parse_json(body);
  if (!answer) return fail(ErrorCode::kFailed, "the answer is no JSON");
  return *std::move(answer);
}

}  // namespace

Result<json> LeaderClient::get(const std::string& target) {
  if (!admin) {
    const auto& [code, why] = admin.error();
    return fail(code, why + (code == ErrorCode::kNotFound ? "; \"lictor leader\" says why" : ""));
  }
  auto answer = get_json(*admin, target);
  if (!answer) return fail(ErrorCode::kFailed, node + ": " + answer.error().message);
  if (answer->is_object()) return answer;
  return fail(ErrorCode::kFailed, node + " answered something other than a JSON object");
}

LeaderClients::LeaderClients(client::Queue queue, std::string token,
                             std::chrono::milliseconds limit)
    : queue_(std::move(queue)), token_(std::move(token)), limit_(limit) {
  auto locks = client::read_locks(queue_.store, queue_.layout);
  if (!locks && locks.error().code != ErrorCode::kPermissionDenied) {
    members_ = tl::unexpected(std::move(locks.error()));
    return;
  }
  locks_ = client::locks_if_known(std::move(locks));
  members_ = read_members(queue_.store, queue_.layout, locks_);
}

std::vector<LeaderClient> LeaderClients::all() const {
  std::vector<LeaderClient> leaders;
  for (const auto& [name, partitions] : partitions_by_leader(locks_)) {
    leaders.push_back(member(name));
  }
  if (leaders.empty()) leaders.push_back(at(0));
  return leaders;
}

LeaderClient LeaderClients::at(std::uint32_t partition) const {
  const std::string name = locks_[partition].name();
  return name.empty() ? LeaderClient{"", tl::unexpected(not_led(partition))} : member(name);
}

Error LeaderClients::not_led(std::uint32_t partition) const {
  if (!members_) return members_.error();
  if (!locks_[partition].known) {
    return {ErrorCode::kFailed, "who leads is not known: the token may not read the lock"};
  }
  const bool none = free_partitions(locks_).size() == locks_.count();
  return {ErrorCode::kNotFound, none ? "nobody leads queue \"" + queue_.name + '"'
                                     : fmt::format("nobody leads partition {}", partition)};
}

LeaderClient LeaderClients::member(const std::string& node) const {
  if (!members_) return {node, tl::unexpected(members_.error())};
  const Member* member = find_member(*members_, node);
  if (member == nullptr) {
    return {node, fail(ErrorCode::kFailed, "the leader, " + node +
                                               ", is not among the members, so its address is "
                                               "unknown")};
  }
  return {node, open_admin(*member, limit_, token_).map_error([&](const Error& error) {
            return Error{ErrorCode::kFailed,
                         "the leader, " + node + ", could not be asked: " + error.message};
          })};
}

Result<json> DaemonClients::get(const std::string& target) {
  if (last_) {
    if (auto answer = get_json(*last_, target)) return answer;
    last_.reset();
  }
  return get(target, read_members(queue_.store, queue_.layout));
}

// If Consul does not list the members, this host's daemon may still be asked: it says why Consul is
// away.
Result<json> DaemonClients::get(const std::string& target,
                                const Result<std::vector<Member>>& listed) {
  if (!listed && own_.empty()) return tl::unexpected(listed.error());
  const std::string host = host_name();
  std::vector<Member> members =
      listed.value_or(std::vector<Member>{{.node = "here", .host = host, .admin = own_}});
  const auto rank = [&](const Member& member) {
    return member.host == host ? 0 : member.leads ? 1 : 2;
  };
  std::stable_sort(members.begin(), members.end(),
                   [&](const Member& a, const Member& b) { return rank(a) < rank(b); });
  std::string why_not;
  ErrorCode code = ErrorCode::kFailed;
  for (const Member& member : members) {
    auto admin = open_admin(member, 2s, token_);
    auto answer = admin ? get_json(*admin, target) : tl::unexpected(admin.error());
    if (answer) {
      last_.emplace(*std::move(admin));
      return answer;
    }
    if (answer.error().code == ErrorCode::kPermissionDenied) code = answer.error().code;
    why_not += (why_not.empty() ? "" : "; ") + member.node + ": " + answer.error().message;
  }
  if (!listed) return tl::unexpected(listed.error());
  if (why_not.empty()) why_not = "no daemon has registered for queue \"" + queue_.name + '"';
  return fail(code, why_not);
}

}  // namespace lictor::cluster
