#include "app/admin_backend.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/host_name.h"
#include "cli/members.h"
#include "wire/consul.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 2s;
constexpr auto kConsulPatience = 1500ms;
constexpr auto kConsulAnswerHolds = 1s;
constexpr auto kFleetHolds = 2s;

// What `work` returns on the loop's thread. Nothing: not within kPatience, or the loop has ended.
template <class Value>
std::optional<Value> ask(runtime::Loop& loop, std::function<Value()> work) {
  auto promise = std::make_shared<std::promise<Value>>();
  auto answer = promise->get_future();
  const bool taken = loop.post(
      [promise = std::move(promise), work = std::move(work)] { promise->set_value(work()); });
  if (!taken || answer.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace

AdminBackend::AdminBackend(runtime::Loop& loop, net::Transport& transport, std::string node,
                           const admin::StoredQueues& queues, ReadStatus read_status,
                           ReadWhy read_why, std::function<std::string()> token)
    : loop_(loop),
      transport_(transport),
      node_(std::move(node)),
      queues_(queues),
      read_status_(std::move(read_status)),
      read_why_(std::move(read_why)),
      token_(std::move(token)) {
  for (const admin::StoredQueue& queue : queues_) fleets_[queue.queue.name];
}

std::optional<admin::Status> AdminBackend::status() {
  return ask<admin::Status>(loop_, read_status_);
}

std::optional<std::string> AdminBackend::why(const std::string& queue, const std::string& id) {
  return ask<std::optional<std::string>>(loop_, [=, this] { return read_why_(queue, id); })
      .value_or(std::nullopt);
}

Result<admin::Fleet> AdminBackend::fleet(const std::string& name) {
  const auto known = fleets_.find(name);
  const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const auto& each) { return each.queue.name == name; });
  if (known == fleets_.end() || queue == queues_.end()) {
    return fail(ErrorCode::kNotFound, "this daemon serves no queue \"" + name + '"');
  }
  KnownFleet& fleet = known->second;
  const std::lock_guard lock{fleet.mutex};
  if (fleet.asked_at == Instant::min() || boot_now() - fleet.asked_at >= kFleetHolds) {
    fleet.fleet = read_fleet(*queue);
    fleet.asked_at = boot_now();
  }
  return fleet.fleet;
}

Result<admin::Fleet> AdminBackend::read_fleet(const admin::StoredQueue& queue) const {
  const auto lock = cli::read_lock(queue.queue.store, queue.queue.layout);
  if (!lock) return tl::unexpected(lock.error());
  auto members = cli::read_members(queue.queue.store, queue.queue.layout);
  if (!members) return tl::unexpected(std::move(members.error()));
  admin::Fleet fleet;
  const std::string leader = lock->text("node");
  (lock->session.empty() ? fleet.last_leader : fleet.leader) = leader;
  if (!lock->session.empty()) fleet.leads_since = lock->text("since");
  // This daemon answers: it is being asked.
  std::vector<cli::Member> others;
  std::copy_if(members->begin(), members->end(), std::back_inserter(others),
               [&](const cli::Member& member) { return member.node != node_; });
  const std::vector<cli::Pulse> pulses = cli::pulses_of(others);
  std::vector<std::string> candidates;
  std::optional<cli::Member> silent_leader;
  for (cli::Member& member : *members) {
    admin::Peer peer;
    cli::Pulse pulse{true, {}};
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (others[i].node == member.node) pulse = pulses[i];
    }
    peer.answers = pulse.answers;
    peer.doubt = cli::doubt_of(member, pulse);
    if (peer.doubt.empty()) {
      candidates.push_back(member.node);
    } else if (member.leads) {
      silent_leader = member;
    }
    peer.node = std::move(member.node);
    peer.host = std::move(member.host);
    peer.pid = std::move(member.pid);
    peer.version = std::move(member.version);
    peer.since = std::move(member.since);
    peer.config = std::move(member.config);
    peer.parts = std::move(member.parts);
    peer.reload_error = std::move(member.reload_error);
    peer.seen = std::move(member.seen);
    peer.admin = std::move(member.admin);
    peer.leads = member.leads;
    fleet.members.push_back(std::move(peer));
  }
  if (silent_leader) {
    fleet.next = cli::if_dead(queue.queue.store, *lock, *silent_leader, candidates);
  } else if (lock->session.empty() && lock->index != 0) {
    fleet.next = cli::if_free(*lock, candidates);
  }
  return fleet;
}

Result<std::string> AdminBackend::ask_member(const std::string& queue, const std::string& node,
                                             const std::string& target) {
  const auto fleet = this->fleet(queue);
  if (!fleet) return tl::unexpected(fleet.error());
  const auto peer = std::find_if(
      fleet->members.begin(), fleet->members.end(),
      [&](const admin::Peer& each) { return node.empty() ? each.leads : each.node == node; });
  if (peer == fleet->members.end()) {
    return fail(ErrorCode::kFailed, node.empty() ? "nobody leads it" : node + " is no member now");
  }
  if (peer->node == node_) {
    return fail(ErrorCode::kFailed, "its leadership is just changing; ask again");
  }
  cli::Member member;
  member.host = peer->host;
  member.admin = peer->admin;
  const cli::Reach reach = cli::reach_of(member, host_name());
  const std::string whose = peer->node + " could not be asked: ";
  if (reach.addresses.empty()) return fail(ErrorCode::kFailed, whose + reach.why_not);
  auto face = cli::AdminClient::open(reach.addresses, kPatience, token_());
  if (!face) return fail(face.error().code, whose + face.error().message);
  auto answer = face->get(target);
  if (!answer) return fail(answer.error().code, whose + answer.error().message);
  return answer;
}

std::string AdminBackend::consul_trouble() {
  const std::lock_guard lock{mutex_};
  if (asked_at_ != Instant::min() && boot_now() - asked_at_ < kConsulAnswerHolds) return trouble_;
  http::Request request;
  request.target = "/v1/status/leader";
  request.timeout = kConsulPatience;
  const http::Response response = transport_.perform(std::move(request));
  asked_at_ = boot_now();
  if (response.delivery != http::Delivery::kReplied || response.status != 200) {
    const bool replied = response.delivery == http::Delivery::kReplied;
    trouble_ = (replied ? "Consul: " : "Consul does not answer: ") + wire::describe(response);
  } else if (response.body.find_first_not_of("\"\n ") == std::string::npos) {
    trouble_ = "Consul has no leader";
  } else {
    trouble_.clear();
  }
  return trouble_;
}

}  // namespace lictor::app
