#include "app/admin_backend.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/json_text.h"
#include "base/try.h"
#include "client/locks.h"
#include "client/task_info.h"
#include "cluster/admin_client.h"
#include "cluster/member.h"
#include "cluster/succession.h"
#include "wire/consul.h"

namespace lictor::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 2s;
constexpr auto kConsulPatience = 1500ms;
constexpr auto kConsulAnswerHolds = 1s;
constexpr auto kConsulAskedLately = 15s;  // an open page asks every 5 s
constexpr auto kFleetHolds = 2s;

// The result of `work` on the loop's thread; std::nullopt after kPatience, or if the loop ended.
// `work` may still run after that, so the promise is shared, and all that `work` refers to must
// outlive the loop's run().
template <class Value>
std::optional<Value> ask(runtime::Loop& loop, std::function<Value()> work) {
  auto promise = std::make_shared<std::promise<Value>>();
  auto answer = promise->get_future();
  const bool taken = loop.post(
      [promise = std::move(promise), work = std::move(work)] { promise->set_value(work()); });
  if (!taken || answer.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

// Whether the reasons say only that this daemon does not lead the task's partition.
bool is_of_another(const std::string& reasons) {
  const auto list = parse_json(reasons);
  return list && list->is_array() && list->size() == 1 && list->front().is_object() &&
         list->front().value("reason", "") == "not_leading";
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

// A member without the task's partition has no reasons: the caller asks that partition's leader.
std::optional<std::string> AdminBackend::why(const std::string& queue, const std::string& id) {
  auto reasons = ask<std::optional<std::string>>(loop_, [=, this] {
                   return read_why_(queue, id);
                 }).value_or(std::nullopt);
  if (reasons && is_of_another(*reasons)) return std::nullopt;
  return reasons;
}

// Null: this daemon does not serve the queue.
const admin::StoredQueue* AdminBackend::find(const std::string& queue) const {
  const auto found = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const auto& each) { return each.queue.name == queue; });
  return found == queues_.end() ? nullptr : &*found;
}

Result<cluster::Fleet> AdminBackend::fleet(const std::string& name) {
  const admin::StoredQueue* queue = find(name);
  if (queue == nullptr) {
    return fail(ErrorCode::kNotFound, "this daemon serves no queue \"" + name + '"');
  }
  KnownFleet& fleet = fleets_.at(name);
  const std::lock_guard lock{fleet.mutex};
  if (fleet.asked_at == Instant::min() || boot_now() - fleet.asked_at >= kFleetHolds) {
    const client::Queue& stored = queue->queue;
    auto locks = client::read_locks(stored.store, stored.layout);
    fleet.fleet = locks ? cluster::read_fleet(stored, *locks, cluster::kGlance, node_)
                        : tl::unexpected(std::move(locks.error()));
    fleet.asked_at = boot_now();
  }
  return fleet.fleet;
}

Result<std::string> AdminBackend::answer_of(const cluster::Member& member,
                                            const std::string& target) const {
  if (member.node == node_) {
    return fail(ErrorCode::kFailed, "its leadership is just changing; ask again");
  }
  const std::string whose = member.node + " could not be asked: ";
  auto admin = cluster::open_admin(member, kPatience, token_());
  if (!admin) return fail(admin.error().code, whose + admin.error().message);
  auto answer = admin->get(target);
  if (!answer) return fail(answer.error().code, whose + answer.error().message);
  return answer;
}

Result<std::string> AdminBackend::ask_member(const std::string& queue, const std::string& node,
                                             const std::string& target) {
  LICTOR_TRY(const auto known, fleet(queue));
  for (const cluster::Member& member : known.members) {
    if (member.node == node) return answer_of(member, target);
  }
  return fail(ErrorCode::kFailed, node + " is no member now");
}

// With one partition the fleet names the leader. With several, the task's record decides which
// partition it is of, so both the record and the locks are read.
Result<std::string> AdminBackend::ask_leader_of(const std::string& queue, const std::string& id,
                                                const std::string& target) {
  LICTOR_TRY(const auto known, fleet(queue));
  if (!known.partitioned()) {
    const std::string leader = known.locks[0].name();
    return leader.empty() ? fail(ErrorCode::kFailed, "nobody leads it")
                          : ask_member(queue, leader, target);
  }
  const client::Queue& stored = find(queue)->queue;
  LICTOR_TRY(const auto tasks, client::show_task(stored, id));
  LICTOR_TRY(const auto locks, client::read_locks(stored.store, stored.layout));
  const client::LockView& lock = locks.of(tasks.front());
  return lock.session.empty() ? fail(ErrorCode::kFailed, "nobody leads partition " +
                                                             std::to_string(lock.partition.number))
                              : ask_member(queue, lock.name(), target);
}

// Asks all leaders at once: one that hangs costs kPatience, several cost no more. This daemon is
// left out; the caller has its own state at hand.
std::vector<AdminBackend::Answer> AdminBackend::ask_leaders(const std::string& queue,
                                                            const std::string& target) {
  const auto fleet = this->fleet(queue);
  if (!fleet) return {};
  std::vector<const cluster::Member*> others;
  for (const cluster::Member& member : fleet->members) {
    if (member.leads && member.node != node_) others.push_back(&member);
  }
  std::vector<Answer> answers(others.size());
  cluster::ask_each(others.size(), [&](std::size_t i) {
    answers[i] = {others[i]->node, answer_of(*others[i], target)};
  });
  return answers;
}

// Asks for Consul's leader: the agent answers that for any token, and the answer is empty while
// Consul has no leader, when nothing can be written.
admin::ConsulTrouble AdminBackend::consul_trouble() {
  const std::lock_guard lock{mutex_};
  if (asked_at_ != Instant::min() && boot_now() - asked_at_ < kConsulAnswerHolds) return trouble_;
  const Instant begun = boot_now();
  const WallTime begun_at = wall_now();
  http::Request request;
  request.target = "/v1/status/leader";
  request.timeout = kConsulPatience;
  const http::Response response = transport_.perform(std::move(request));
  asked_at_ = boot_now();
  std::string what;
  if (response.delivery != http::Delivery::kReplied || response.status != 200) {
    const bool replied = response.delivery == http::Delivery::kReplied;
    what = (replied ? "Consul: " : "Consul does not answer: ") + wire::describe(response);
  } else if (response.body.find_first_not_of("\"\n ") == std::string::npos) {
    what = "Consul has no leader";
  }
  if (what.empty()) {
    answered_at_ = asked_at_;
  } else if (!trouble_.any()) {
    trouble_.since = begun_at;
    trouble_.at_least = answered_at_ == Instant::min() || begun - answered_at_ > kConsulAskedLately;
  }
  trouble_.what = std::move(what);
  return trouble_;
}

}  // namespace lictor::app
