#include "runtime/lock_watch.h"

#include <utility>

namespace lictor::runtime {
namespace {

bool is_news(const core::LeaderRead& lock, const core::ReadLeader& read) {
  return lock.found ? lock.modify_index > read.index : lock.consul_index > read.index;
}

core::LeaderRead answer_to(const core::ReadLeader& read, const wire::LocksRead& locks) {
  core::LeaderRead answer;
  if (locks.ok) {
    answer = locks.locks.at(read.partition.number);
  } else {
    answer.error = locks.error;
  }
  answer.request = read.request;
  return answer;
}

}  // namespace

std::optional<core::LeaderRead> LockWatch::add(const core::ReadLeader& read) {
  const std::lock_guard lock{mutex_};
  if (read.index != 0 && last_.ok && is_news(last_.locks.at(read.partition.number), read)) {
    return answer_to(read, last_);
  }
  waiting_.emplace(read.request, Waiting{read});
  is_settled_ = false;
  return std::nullopt;
}

bool LockWatch::cancel(RequestId request) {
  const std::lock_guard lock{mutex_};
  return waiting_.erase(request) != 0;
}

std::optional<std::uint64_t> LockWatch::next_query() {
  const std::lock_guard lock{mutex_};
  if (is_settled_) return std::nullopt;
  const std::uint64_t from = last_.ok ? last_.consul_index : 0;
  bool watches = false;
  bool reads = false;
  for (auto& [request, waiting] : waiting_) {
    if (waiting.read.index != 0 && from != 0) {
      watches = true;
    } else if (!reading_) {
      reads = reads || !waiting.asked;
      waiting.asked = true;
    }
  }
  if (reads) {
    reading_ = true;
    return 0;
  }
  is_settled_ = true;
  if (!watches || std::exchange(watching_, true)) return std::nullopt;
  return from;
}

std::vector<core::LeaderRead> LockWatch::on_reply(std::uint64_t index,
                                                  const wire::LocksRead& reply) {
  const std::lock_guard lock{mutex_};
  const bool is_watch = index != 0;
  (is_watch ? watching_ : reading_) = false;
  is_settled_ = false;
  // Don't answer yet: the next query, from the same index, is likely to succeed.
  if (is_watch && !reply.ok && last_.ok && failures_.keeps_index(reply.over_limit)) return {};
  if (reply.ok) failures_.over();
  // Reads that wait for a change are answered without one when the query's time is over, when the
  // index fell, when no query can wait, and after an error, unless a watch still goes on.
  bool all = is_watch || !last_.ok;
  if (reply.ok) {
    const bool is_over = is_watch && last_.ok && reply.consul_index == last_.consul_index;
    const bool fell = last_.ok && reply.consul_index < last_.consul_index;
    all = is_over || fell || reply.consul_index == 0;
  }
  if (reply.ok || all) last_ = reply;
  std::vector<core::LeaderRead> answers;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto& [read, asked] = it->second;
    const bool waits_for_change = read.index != 0;
    const bool answered = waits_for_change
                              ? all || is_news(last_.locks.at(read.partition.number), read)
                              : !is_watch && asked;
    if (answered) {
      answers.push_back(answer_to(read, waits_for_change ? last_ : reply));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  return answers;
}

}  // namespace lictor::runtime
