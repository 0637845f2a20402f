#include "runtime/lock_release.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "core/leadership/lock_release.h"
#include "net/connections.h"

namespace lictor::runtime {
namespace {

// After this time the next agent is asked.
constexpr std::chrono::milliseconds kRequestTimeout{1000};
constexpr std::chrono::milliseconds kConnectTimeout{500};
constexpr std::chrono::milliseconds kPause{100};

// One lock on its way to be free. All locks of the dead daemon advance together, a request for each
// and a common wait for the replies, since a daemon may hold many and the time is short:
//
//   unlock each --> all of a session are free --> session file removed --> session destroyed
struct ReleasingLock {
  const exec::HeldLock* held;
  const LockOwner* owner;
  wire::Binding binding;
  std::string session;
  core::LockRelease steps;
  bool keeps_session = false;
  std::string error{};
  bool forgotten = false;  // removed from the session file

  [[nodiscard]] bool done() const {
    return steps.done() || (keeps_session && steps.lock_is_free());
  }
};

using Answer = std::function<bool(const http::Response&)>;

// The request for the next step, and the handler of its reply.
std::pair<http::Request, Answer> next_request(ReleasingLock& lock) {
  return std::visit(
      [&](const auto& effect) -> std::pair<http::Request, Answer> {
        if constexpr (requires { lock.steps.on(wire::decode(effect, http::Response{})); }) {
          http::Request request;
          if constexpr (requires { wire::encode(lock.binding, effect, wall_now()); }) {
            request = wire::encode(lock.binding, effect, wall_now());  // for the request's value
          } else {
            request = wire::encode(lock.binding, effect);
          }
          return {std::move(request), [&lock, effect](const http::Response& r) {
                    return lock.steps.on(wire::decode(effect, r));
                  }};
        } else {
          return {};
        }
      },
      lock.steps.ask(RequestId{1}));
}

// Destroying the session would start the lock-delay of the other locks that it still holds.
bool waits_for_others(const ReleasingLock& lock, const std::vector<ReleasingLock>& locks) {
  return lock.steps.lock_is_free() &&
         std::any_of(locks.begin(), locks.end(), [&](const ReleasingLock& other) {
           return other.session == lock.session && !other.steps.lock_is_free();
         });
}

// One step for each lock. False: a reply is missing, so pause before the next step.
bool step(net::Transport& transport, std::vector<ReleasingLock>& locks) {
  std::vector<std::future<http::Response>> replies;
  std::vector<Answer> answers;
  std::vector<ReleasingLock*> asked;
  for (ReleasingLock& lock : locks) {
    if (waits_for_others(lock, locks)) continue;
    asked.push_back(&lock);
    // Do this before the session is destroyed, so that a restarted daemon does not resume it.
    if (lock.steps.lock_is_free() && !std::exchange(lock.forgotten, true)) {
      lock.owner->session_file.save({});
    }
    auto [request, answer] = next_request(lock);
    const auto reply = std::make_shared<std::promise<http::Response>>();
    replies.push_back(reply->get_future());
    answers.push_back(std::move(answer));
    transport.send(std::move(request),
                   [reply](http::Response response) { reply->set_value(std::move(response)); });
  }
  bool all = true;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const http::Response response = replies[i].get();
    const bool answered = answers[i](response);
    if (!answered) asked[i]->error = wire::describe(response);
    all = all && answered;
  }
  return all;
}

const LockOwner& owner_of(const exec::HeldLock& lock, const std::vector<LockOwner>& owners) {
  return *std::prev(
      std::find_if(std::next(owners.begin()), owners.end(),
                   [&](const LockOwner& owner) { return owner.first_slot > lock.slot; }));
}

// Names the released locks. The others had another holder by then.
std::string given_back_text(std::vector<const exec::HeldLock*> locks,
                            const std::vector<LockOwner>& owners) {
  if (locks.empty()) return "it held no lock any more";
  std::sort(locks.begin(), locks.end(),
            [](const auto* a, const auto* b) { return a->slot < b->slot; });
  std::string names;
  for (const exec::HeldLock* lock : locks) {
    const LockOwner& owner = owner_of(*lock, owners);
    names += (names.empty() ? "" : ", ") + owner.binding.queue;
    if (lock->partitions > 1) names += '/' + std::to_string(lock->slot - owner.first_slot);
  }
  return "gave back the lock of " + names;
}

}  // namespace

std::string release_locks(net::Options options, const std::vector<LockOwner>& owners,
                          const std::vector<exec::HeldLock>& held) {
  const Instant until = boot_now() + exec::kLockReleaseTimeout;
  std::vector<ReleasingLock> locks;
  for (const exec::HeldLock& one : held) {
    const LockOwner& owner = owner_of(one, owners);
    const core::Partition partition{one.partitions, one.slot - owner.first_slot};
    ReleasingLock lock{&one,
                       &owner,
                       owner.binding,
                       one.session,
                       {one.session, one.index, partition},
                       one.keeps_session};
    lock.binding.leader_value = one.value;
    lock.binding.request_timeout = kRequestTimeout;
    locks.push_back(std::move(lock));
  }
  const std::string dead = "the daemon is dead, and so are its jobs; ";
  const std::string later = "; the next leader waits for the session's TTL and the lock-delay";
  options.connect_timeout = kConnectTimeout;
  net::Tuning tuning;
  tuning.max_short_requests = net::kMostConnections - tuning.max_urgent_requests;
  auto opened = net::Transport::open(std::move(options), tuning);
  if (!opened) return dead + "the lock is not given back: " + opened.error().message + later;
  // Never destroyed: the destructor would wait for a name server that does not answer.
  net::Transport& transport = *opened->release();
  std::vector<const exec::HeldLock*> given_back;
  while (true) {
    const bool all_answered = step(transport, locks);
    for (const ReleasingLock& lock : locks) {
      if (lock.done() && lock.steps.gave_back()) given_back.push_back(lock.held);
    }
    std::erase_if(locks, [](const ReleasingLock& lock) { return lock.done(); });
    if (locks.empty()) return dead + given_back_text(std::move(given_back), owners);
    if (boot_now() >= until) break;
    if (!all_answered) std::this_thread::sleep_for(kPause);
  }
  const ReleasingLock& left = locks.front();
  return dead + "the lock of " + left.binding.queue + " may not be given back: " + left.error +
         later;
}

}  // namespace lictor::runtime
