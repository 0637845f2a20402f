#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/carrier.h"
#include "net/transport.h"

namespace lictor::net {

/// The transport: a thread that drives a Carrier. The others put orders into the inbox and wake it.
///
/// Destruction ends all requests with kCancelled. A callback that answers kCancelled with another
/// send() would keep the destructor from ever returning.
class CurlTransport final : public Transport {
 public:
  /// As Transport::open().
  [[nodiscard]] static Result<std::unique_ptr<CurlTransport>> open(Options options, Tuning tuning);
  ~CurlTransport() override;

  RequestId send(Request request, Callback done) override;
  void cancel(RequestId request) override;
  void set_token(std::string token) override;

 private:
  // Either a new request, or, without a callback, the order to cancel one.
  struct Order {
    RequestId id;
    Request request;
    Callback done;
    Instant sent_at{};
  };

  explicit CurlTransport(std::unique_ptr<Carrier> carrier);
  void post(Order order);

  void run();
  bool take_orders();
  [[nodiscard]] std::chrono::milliseconds longest_wait();

  const std::unique_ptr<Carrier> carrier_;  // the network thread's own

  std::atomic<std::uint64_t> last_id_ = 0;
  std::mutex mutex_;
  std::vector<Order> inbox_;
  bool stopping_ = false;

  std::vector<Order> orders_;  // the network thread's own
  std::thread thread_;
};

}  // namespace lictor::net
