#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "net/transport.h"

namespace lictor::net {

/// Wraps a transport, and reports once that an answer takes long, so that the user of a silent
/// command knows what it waits for. Thread safe.
class PatientTransport : public Transport {
 public:
  /// `tell` is called at most once, from a thread of ours, when a request that is no blocking query
  /// has waited for `after`.
  PatientTransport(std::unique_ptr<Transport> transport, Duration after,
                   std::function<void()> tell);

  RequestId send(Request request, Callback done) override;
  void cancel(RequestId request) override { transport_->cancel(request); }

 private:
  void watch(const std::stop_token& ending);

  const Duration after_;
  const std::function<void()> tell_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::uint64_t, Instant> waiting_;  // in the order of sending
  std::uint64_t last_ = 0;
  // Its last callbacks use what stands above, so it goes first.
  const std::unique_ptr<Transport> transport_;
  std::jthread watcher_;
};

}  // namespace lictor::net
