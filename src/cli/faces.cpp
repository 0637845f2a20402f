#include "cli/faces.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/try.h"
#include "cli/json_output.h"
#include "cli/partitions.h"
#include "wire/json_text.h"
#include "wire/layout.h"

namespace lictor::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

LeaderFace face_of(const Member& member, const Client& client, std::chrono::milliseconds limit) {
  LeaderFace leader;
  leader.node = member.node;
  const Reach reach = reach_of(member, host_name());
  leader.why_not = "the leader, " + member.node + ", could not be asked: " + reach.why_not;
  if (reach.addresses.empty()) return leader;
  if (auto face = AdminClient::open(reach.addresses, limit, client.admin_token)) {
    leader.face = std::move(*face);
  } else {
    leader.why_not += face.error().message;
  }
  return leader;
}

}  // namespace

void LeaderFaces::read() {
  if (members_) return;
  auto locks = client::read_locks(client_.store, client_.layout);
  if (!locks && locks.error().code != ErrorCode::kPermissionDenied) {
    members_ = tl::unexpected(std::move(locks.error()));
    return;
  }
  locks_ = client::locks_if_known(std::move(locks));
  members_ = read_members(client_.store, client_.layout, locks_);
}

LeaderFace& LeaderFaces::of(const TaskInfo& task) {
  read();
  return at(locks_.partition_of(task));
}

LeaderFace& LeaderFaces::any() {
  read();
  const std::vector<Member> none;
  const std::vector<Member>& members = *members_ ? **members_ : none;
  const auto leads = std::find_if(members.begin(), members.end(),
                                  [](const Member& member) { return member.leads; });
  return leads == members.end() ? first() : at(leads->partitions.front());
}

LeaderFace& LeaderFaces::first() {
  LeaderFace& leader = at(0);
  if (free_partitions(locks_).size() == locks_.count()) leader.why_not = "no member leads";
  return leader;
}

std::vector<LeaderFace> LeaderFaces::take_all() {
  read();
  std::vector<LeaderFace> leaders;
  for (const auto& [name, partitions] : partitions_by_leader(locks_)) {
    leaders.push_back(std::move(at(partitions.front())));
  }
  if (leaders.empty()) leaders.push_back(std::move(first()));
  return leaders;
}

LeaderFace& LeaderFaces::at(std::uint32_t partition) {
  const std::string name = lock_of(locks_, partition).name();
  const auto [place, is_new] =
      faces_.try_emplace(name.empty() ? '/' + std::to_string(partition) : name);
  LeaderFace& leader = place->second;
  if (!is_new) return leader;
  if (!*members_) {
    leader.why_not = members_->error().message;
    leader.code = members_->error().code;
    return leader;
  }
  const auto member = std::find_if((*members_)->begin(), (*members_)->end(),
                                   [&](const Member& each) { return each.node == name; });
  if (!locks_.leader(partition).known) {
    leader.why_not = "who leads is not known: the token may not read the lock";
  } else if (name.empty()) {
    leader.why_not = locks_.count() == 1 ? "no member leads"
                                         : fmt::format("nobody leads partition {}", partition);
    leader.code = ErrorCode::kNotFound;
  } else if (member == (*members_)->end()) {
    leader.why_not =
        "the leader, " + name + ", is not among the members, so its address is unknown";
  } else {
    leader = face_of(*member, client_, limit_);
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
  LeaderFaces leaders{client, kGlance};
  std::size_t asked = 0;
  for (TaskInfo& task : tasks) {
    const bool waits = task.state == TaskState::kWaiting || task.state == TaskState::kScheduled;
    if (!waits || task.modify_index == task.create_index || asked++ == kMostAsked) continue;
    LeaderFace& leader = leaders.of(task);
    const auto reasons = ask_why(client, leader, task.id);
    if (!reasons) leader.face.reset();  // ask it no more
    if (!reasons || text_of(reasons->front(), "reason") != "running") continue;
    task.state = TaskState::kRunning;
    task.node = leader.node;
  }
}

}  // namespace lictor::cli
