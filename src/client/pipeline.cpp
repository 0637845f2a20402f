#include "client/pipeline.h"

#include <algorithm>

#include "base/clock.h"

namespace lictor::client {

Pipeline::~Pipeline() {
  drop_unsent();
  Lock lock{mutex_};
  changed_.wait(lock, [this] { return under_way_ == 0 && !sending_; });
}

void Pipeline::add(http::Request request) {
  Lock lock{mutex_};
  if (calls_.empty()) held_up_ = false;
  calls_.push_back(std::make_shared<PendingRequest>(PendingRequest{std::move(request)}));
  send(lock);
}

Pipeline::Answer Pipeline::next() {
  Lock lock{mutex_};
  const std::shared_ptr<PendingRequest> oldest = calls_.front();
  while (true) {
    if (oldest->state == State::kWaiting) held_up_ = false;  // it may be set again
    send(lock);
    if (oldest->state == State::kAnswered) break;
    changed_.wait(lock);
  }
  calls_.pop_front();
  return std::move(*oldest->answer);
}

std::size_t Pipeline::drop_unsent() {
  const Lock lock{mutex_};
  const std::size_t before = calls_.size();
  while (!calls_.empty() && calls_.back()->state == State::kWaiting) calls_.pop_back();
  return before - calls_.size();
}

std::deque<std::shared_ptr<Pipeline::PendingRequest>>::iterator Pipeline::next_waiting() {
  return std::find_if(calls_.begin(), calls_.end(),
                      [](const auto& call) { return call->state == State::kWaiting; });
}

bool Pipeline::may_send() {
  return !held_up_ && under_way_ < at_once_ && next_waiting() != calls_.end();
}

// Sends what may be sent. Unlocks meanwhile, so answers may come before it returns.
void Pipeline::send(Lock& lock) {
  if (sending_) return;  // the sending thread looks again
  sending_ = true;
  while (may_send()) {
    const std::shared_ptr<PendingRequest> call = *next_waiting();
    ++under_way_;
    call->state = State::kUnderWay;
    http::Request request = std::move(call->request);
    lock.unlock();
    transport_.send(std::move(request),
                    [this, call](http::Response response) { answered(call, std::move(response)); });
    lock.lock();
  }
  sending_ = false;
  changed_.notify_all();
}

// Runs on the network's thread, which sends the next request.
void Pipeline::answered(const std::shared_ptr<PendingRequest>& call, http::Response response) {
  Lock lock{mutex_};
  --under_way_;
  call->state = State::kAnswered;
  if (response.delivery != http::Delivery::kReplied || response.status != 200) held_up_ = true;
  call->answer = Answer{std::move(response), boot_now()};
  send(lock);
  changed_.notify_all();
}

}  // namespace lictor::client
