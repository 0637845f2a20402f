#include "client/pipeline.h"

#include <utility>

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
  calls_.push_back(std::make_shared<Call>(Call{std::move(request)}));
  ++unsent_;
  send(lock);
}

http::Response Pipeline::next() {
  Lock lock{mutex_};
  const std::shared_ptr<Call> oldest = calls_.front();
  if (!oldest->sent) held_up_ = false;
  while (true) {
    send(lock);
    if (oldest->response) break;
    if (may_send() && !sending_) {
      changed_.wait_for(lock, next_turn() - boot_now());
    } else {
      changed_.wait(lock);
    }
  }
  calls_.pop_front();
  return std::move(*oldest->response);
}

std::size_t Pipeline::drop_unsent() {
  const Lock lock{mutex_};
  const std::size_t dropped = std::exchange(unsent_, 0);
  calls_.resize(calls_.size() - dropped);
  return dropped;
}

bool Pipeline::may_send() const { return unsent_ > 0 && !held_up_ && under_way_ < at_once_; }

Instant Pipeline::next_turn() const {
  return under_way_ == 0 ? Instant{} : last_sent_ + usual_time_ / 3;
}

// What may leave. Unlocked meanwhile: an answer may come before it returns.
void Pipeline::send(Lock& lock) {
  if (sending_) return;  // whoever does looks again
  sending_ = true;
  while (may_send() && boot_now() >= next_turn()) {
    const std::shared_ptr<Call> call = calls_[calls_.size() - unsent_];
    --unsent_;
    ++under_way_;
    call->sent = true;
    call->sent_at = last_sent_ = boot_now();
    lock.unlock();
    transport_.send(std::move(call->request),
                    [this, call](http::Response response) { answered(call, std::move(response)); });
    lock.lock();
  }
  sending_ = false;
  changed_.notify_all();
}

void Pipeline::answered(const std::shared_ptr<Call>& call, http::Response response) {
  Lock lock{mutex_};
  --under_way_;
  if (response.delivery == http::Delivery::kReplied && response.status == 200) {
    const Duration time = boot_now() - call->sent_at;
    usual_time_ = usual_time_ == Duration::zero() ? time : (usual_time_ * 7 + time) / 8;
  } else {
    held_up_ = true;
  }
  call->response = std::move(response);
  send(lock);
  changed_.notify_all();
}

}  // namespace lictor::client
