#include "net/transport.h"

#include <future>
#include <utility>

#include "base/assert.h"
#include "net/curl_transport.h"

namespace lictor::net {

Result<std::unique_ptr<Transport>> Transport::open(Options options) {
  return CurlTransport::open(std::move(options), Tuning{});
}

Response Transport::perform(Request request) {
  LICTOR_ASSERT(!on_network_thread());  // It would wait for itself.
  // Shared: set_value() may still be in the promise when get() has already returned here.
  const auto promise = std::make_shared<std::promise<Response>>();
  std::future<Response> reply = promise->get_future();
  send(std::move(request),
       [promise](Response response) { promise->set_value(std::move(response)); });
  return reply.get();
}

}  // namespace lictor::net
