#include "net/patient_transport.h"

#include <utility>

#include "base/clock.h"

namespace lictor::net {

PatientTransport::PatientTransport(std::unique_ptr<Transport> transport, Duration after,
                                   std::function<void()> tell)
    : after_(after),
      tell_(std::move(tell)),
      transport_(std::move(transport)),
      watcher_([this](const std::stop_token& ending) { watch(ending); }) {}

RequestId PatientTransport::send(Request request, Callback done) {
  if (request.long_poll) return transport_->send(std::move(request), std::move(done));
  std::uint64_t place = 0;
  {
    const std::lock_guard lock{mutex_};
    place = ++last_;
    waiting_.emplace_hint(waiting_.end(), place, boot_now());
    if (waiting_.size() == 1) changed_.notify_one();
  }
  return transport_->send(std::move(request),
                          [this, place, done = std::move(done)](Response response) {
                            {
                              const std::lock_guard lock{mutex_};
                              waiting_.erase(place);
                            }
                            done(std::move(response));
                          });
}

void PatientTransport::watch(const std::stop_token& ending) {
  std::unique_lock lock{mutex_};
  while (!ending.stop_requested()) {
    changed_.wait(lock, ending, [this] { return !waiting_.empty(); });
    if (waiting_.empty()) continue;
    const Duration left = waiting_.begin()->second + after_ - boot_now();
    if (left <= Duration::zero()) {
      lock.unlock();
      return tell_();
    }
    changed_.wait_for(lock, ending, left, [] { return false; });
  }
}

}  // namespace lictor::net
