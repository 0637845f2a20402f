#include "net/curl_transport.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "base/try.h"

namespace lictor::net {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestWait{60'000};  // deadlines and wake-ups come sooner

thread_local bool is_network_thread = false;

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(Options options) {
  return CurlTransport::open(std::move(options), Tuning{});
}

Response Transport::perform(Request request) {
  LICTOR_ASSERT(!is_network_thread);  // It would wait for itself.
  // Shared: set_value() may still be in the promise when get() has already returned here.
  const auto promise = std::make_shared<std::promise<Response>>();
  std::future<Response> reply = promise->get_future();
  send(std::move(request),
       [promise](Response response) { promise->set_value(std::move(response)); });
  return reply.get();
}

Result<std::unique_ptr<CurlTransport>> CurlTransport::open(Options options, Tuning tuning) {
  LICTOR_TRY(auto carrier, Carrier::open(std::move(options), tuning));
  return std::unique_ptr<CurlTransport>{new CurlTransport(std::move(carrier))};
}

CurlTransport::CurlTransport(std::unique_ptr<Carrier> carrier) : carrier_(std::move(carrier)) {
  thread_ = start_thread([this] { run(); });
}

CurlTransport::~CurlTransport() {
  LICTOR_ASSERT(std::this_thread::get_id() != thread_.get_id());  // It would join itself.
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  carrier_->wake();
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
  if (wake) carrier_->wake();
}

void CurlTransport::set_token(std::string token) { carrier_->set_token(token); }

void CurlTransport::run() {
  is_network_thread = true;
  pthread_setname_np(pthread_self(), "lictor-net");
  while (take_orders()) carrier_->step(longest_wait());
  do {
    carrier_->cancel_all();
  } while (take_orders(), !carrier_->idle());
  is_network_thread = false;
}

// False once the transport is to stop.
bool CurlTransport::take_orders() {
  bool stopping = false;
  {
    const std::lock_guard lock{mutex_};
    orders_.swap(inbox_);
    stopping = stopping_;
  }
  for (Order& order : orders_) {
    if (order.done) {
      carrier_->send(order.id, std::move(order.request), std::move(order.done), order.sent_at);
    } else {
      carrier_->cancel(order.id);
    }
  }
  orders_.clear();
  return !stopping;
}

milliseconds CurlTransport::longest_wait() {
  {
    // A callback's send() doesn't wake this thread, nor does a later send() of another thread.
    const std::lock_guard lock{mutex_};
    if (!inbox_.empty()) return milliseconds{0};
  }
  const Instant next = carrier_->next_deadline();
  if (next == Instant::min()) return milliseconds{0};
  if (next == Instant::max()) return kLongestWait;
  return std::clamp(std::chrono::ceil<milliseconds>(next - boot_now()), milliseconds{0},
                    kLongestWait);
}

}  // namespace lictor::net
