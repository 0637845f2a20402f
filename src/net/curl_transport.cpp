#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/try.h"
#include "net/consul_client.h"
#include "net/transport.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestWait{60'000};  // deadlines and wake-ups come sooner

thread_local bool is_network_thread = false;

// A thread that drives a ConsulClient. Other threads put orders into the inbox and wake it.
//
//   send(), cancel() --> inbox_ --wake()--> take_orders() --> ConsulClient::step() --> callbacks
//
// send() assigns a request's id and time: the time-out runs from there, and a cancel() that follows
// at once finds its request, since orders keep their sequence. At the end the thread cancels all
// requests, and then those that the callbacks sent meanwhile, until none is left.
class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(std::unique_ptr<ConsulClient> consul_client);
  ~CurlTransport() override;

  RequestId send(Request request, Callback done) override;
  void cancel(RequestId request) override;

 private:
  // Either a new request, or, without a callback, the order to cancel one.
  struct Order {
    RequestId id;
    Request request;
    Callback done;
    Instant sent_at{};
  };

  void post(Order order);
  void run();
  bool take_orders();
  [[nodiscard]] std::chrono::milliseconds longest_wait();

  const std::unique_ptr<ConsulClient> consul_client_;  // the network thread's own

  std::atomic<std::uint64_t> last_id_ = 0;
  std::mutex mutex_;
  std::vector<Order> inbox_;
  bool stopping_ = false;
  std::thread thread_;
};

CurlTransport::CurlTransport(std::unique_ptr<ConsulClient> consul_client)
    : consul_client_(std::move(consul_client)) {
  thread_ = start_thread([this] { run(); });
}

CurlTransport::~CurlTransport() {
  LICTOR_ASSERT(std::this_thread::get_id() != thread_.get_id());  // It would join itself.
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  consul_client_->wake();
  thread_.join();
}

RequestId CurlTransport::send(Request request, Callback done) {
  LICTOR_ASSERT(done != nullptr);
  const RequestId id{last_id_.fetch_add(1, std::memory_order_relaxed) + 1};
  post({id, std::move(request), std::move(done), boot_now()});
  return id;
}

void CurlTransport::cancel(RequestId request) { post({request, {}, {}, {}}); }

void CurlTransport::post(Order order) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    wake = inbox_.empty() && std::this_thread::get_id() != thread_.get_id();
    inbox_.push_back(std::move(order));
  }
  if (wake) consul_client_->wake();
}

void CurlTransport::run() {
  is_network_thread = true;
  pthread_setname_np(pthread_self(), "lictor-net");
  while (take_orders()) consul_client_->step(longest_wait());
  do {
    consul_client_->cancel_all();
  } while (take_orders(), !consul_client_->idle());
  is_network_thread = false;
}

// Returns false once the transport must stop.
bool CurlTransport::take_orders() {
  std::vector<Order> orders;
  bool stopping = false;
  {
    const std::lock_guard lock{mutex_};
    orders.swap(inbox_);
    stopping = stopping_;
  }
  for (Order& order : orders) {
    if (order.done) {
      consul_client_->send(order.id, std::move(order.request), std::move(order.done),
                           order.sent_at);
    } else {
      consul_client_->cancel(order.id);
    }
  }
  return !stopping;
}

milliseconds CurlTransport::longest_wait() {
  {
    // A callback's send() doesn't wake this thread, nor does a later send() of another thread.
    const std::lock_guard lock{mutex_};
    if (!inbox_.empty()) return milliseconds{0};
  }
  const Instant next = consul_client_->next_deadline();
  if (next == Instant::min()) return milliseconds{0};
  if (next == Instant::max()) return kLongestWait;
  return std::clamp(std::chrono::ceil<milliseconds>(next - boot_now()), milliseconds{0},
                    kLongestWait);
}

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(Options options, Tuning tuning) {
  LICTOR_TRY(auto consul_client, ConsulClient::open(std::move(options), tuning));
  return std::make_unique<CurlTransport>(std::move(consul_client));
}

Response Transport::perform(Request request) {
  LICTOR_ASSERT(!is_network_thread);  // It would wait for itself.
  // Shared: set_value() may still be in the promise when get() has already returned here.
  const auto promise = std::make_shared<std::promise<Response>>();
  std::future<Response> reply = promise->get_future();
  const bool patient = request.long_poll || !notify_slow_;
  send(std::move(request),
       [promise](Response response) { promise->set_value(std::move(response)); });
  if (!patient && reply.wait_for(slow_after_) == std::future_status::timeout) {
    std::call_once(slow_notified_, notify_slow_);
  }
  return reply.get();
}

void Transport::on_slow_reply(Duration after, std::function<void()> notify) {
  slow_after_ = after;
  notify_slow_ = std::move(notify);
}

}  // namespace lictor::net
