#include "runtime/lock_watch.h"

#include <utility>

namespace lictor::runtime {
namespace {

bool is_news(const core::LeaderRead& lock, const core::ReadLeader& read) {
  return lock.found ? lock.modify_index > read.index : lock.consul_index > read.index;
}

}  // namespace

core::LeaderRead LockWatch::answer_to(const core::ReadLeader& read) const {
  core::LeaderRead answer;
  if (last_.ok) {
    answer = last_.locks.at(read.partition.number);
  } else {
    answer.error = last_.error;
  }
  answer.request = read.request;
  return answer;
}

std::optional<core::LeaderRead> LockWatch::add(const core::ReadLeader& read) {
  const std::lock_guard lock{mutex_};
  if (last_.ok && is_news(last_.locks.at(read.partition.number), read)) return answer_to(read);
  waiting_.emplace(read.request, read);
  return std::nullopt;
}

bool LockWatch::cancel(RequestId request) {
  const std::lock_guard lock{mutex_};
  return waiting_.erase(request) != 0;
}

std::optional<std::uint64_t> LockWatch::next_query() {
  const std::lock_guard lock{mutex_};
  if (querying_ || waiting_.empty()) return std::nullopt;
  querying_ = true;
  return last_.ok ? last_.consul_index : 0;
}

std::vector<core::LeaderRead> LockWatch::on_reply(wire::LocksRead reply) {
  const std::lock_guard lock{mutex_};
  querying_ = false;
  // Don't answer yet: the next query, from the same index, is likely to succeed.
  if (!reply.ok && last_.ok && failures_.keeps_index(reply.over_limit)) return {};
  if (reply.ok) failures_.over();
  // Without a change the query's time is over, or Consul counts again: every read gets the answer.
  const bool all = !reply.ok || (last_.ok && reply.consul_index <= last_.consul_index);
  last_ = std::move(reply);
  std::vector<core::LeaderRead> answers;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const core::ReadLeader& read = it->second;
    if (all || is_news(last_.locks.at(read.partition.number), read)) {
      answers.push_back(answer_to(read));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return answers;
}

}  // namespace lictor::runtime
