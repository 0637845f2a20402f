#include "net/patient_transport.h"

#include <utility>

#include "base/clock.h"

namespace lictor::net {

PatientTransport::PatientTransport(std::unique_ptr<Transport> transport, Duration after,
                                   std::function<void()> tell)
    : transport_(std::move(transport)),
      after_(after),
      tell_(std::move(tell)),
      watcher_([this] { watch(); }) {}

PatientTransport::~PatientTransport() {
  transport_.reset();  // its last callbacks are ours
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  changed_.notify_one();
  watcher_.join();
}

RequestId PatientTransport::send(Request request, Callback done) {
  if (request.long_poll) return transport_->send(std::move(request), std::move(done));
  std::uint64_t place = 0;
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    place = ++last_;
    first = waiting_.empty();
    waiting_.emplace_hint(waiting_.end(), place, boot_now());
  }
  if (first) changed_.notify_one();
  return transport_->send(std::move(request),
                          [this, place, done = std::move(done)](Response response) {
                            {
                              const std::lock_guard lock{mutex_};
                              waiting_.erase(place);
                            }
                            done(std::move(response));
                          });
}

void PatientTransport::watch() {
  std::unique_lock lock{mutex_};
  while (!ended_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Instant until = waiting_.begin()->second + after_;
    if (boot_now() >= until) break;
    changed_.wait_for(lock, until - boot_now());
  }
  if (ended_) return;
  lock.unlock();
  tell_();
}

}  // namespace lictor::net
