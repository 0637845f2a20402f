#pragma once

// One request between two sides that do not wait for each other: the server's thread, which alone
// may touch libmicrohttpd, and the handler, which answers from any thread, perhaps much later.
//
//   server's thread                            any thread
//   suspend(), dispatch() ------------------>  handler runs on a worker
//                                              answer(), send(), end(): under the mutex of Shared
//   take_ready() <--- Shared::ready, wake ---  post()
//   resume() --> take_response(), read()
//
// While a request is handled its connection is suspended, so one that waits for long costs no
// thread. A call may outlive its connection and the server, since the handler may keep it. Then
// `mhd` is null or Shared is closed, and the answer is dropped.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "base/wake_event.h"
#include "httpd/exchange.h"

struct MHD_Connection;

namespace lictor::httpd {

class Call;

/// State that a server shares with its exchanges, which may outlive it. Thread safe.
struct Shared {
  explicit Shared(std::size_t max_workers) : workers(max_workers) {}

  /// Tells the server's thread that `call` has something for it.
  void post(std::shared_ptr<Call> call);
  void notify() const { wake.wake(); }
  [[nodiscard]] std::vector<std::shared_ptr<Call>> take_ready();
  /// The server's thread ends: no call is kept any more.
  void close();

  WakeEvent wake;
  std::mutex mutex;
  std::vector<std::shared_ptr<Call>> ready;
  bool closed = false;
  std::atomic<bool> stopping = false;
  ThreadPool workers;
};

/// The exchange of one request over libmicrohttpd.
class Call : public Exchange, public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<Shared> shared, MHD_Connection* connection)
      : mhd(connection), shared_(std::move(shared)) {}

  [[nodiscard]] const Request& request() const override { return asked; }
  void answer(Response response) override;
  [[nodiscard]] bool gone() const override { return gone_ || shared_->stopping; }
  void later(std::chrono::milliseconds delay, std::function<void()> job) override {
    shared_->workers.post(std::move(job), delay);
  }
  [[nodiscard]] bool send(std::string_view bytes) override;
  void end() override;

  void set_gone() { gone_ = true; }
  [[nodiscard]] bool is_gone() const { return gone_; }

  // The members below are for the server's thread.
  void suspend();
  /// Does nothing if the request is over, or its connection is not suspended.
  void resume();
  /// std::nullopt: the handler has not answered, which happens only at the server's end.
  [[nodiscard]] std::optional<Response> take_response();
  /// The next bytes of a stream, as MHD_ContentReaderCallback returns them. Suspends if there are
  /// none yet.
  [[nodiscard]] ssize_t read(char* buffer, std::size_t size);

  Request asked;            // not changed any more once dispatched
  MHD_Connection* mhd;      // null: the request is over
  bool dispatched = false;  // given to a worker, or refused
  bool suspended = false;
  bool is_stream = false;

 private:
  const std::shared_ptr<Shared> shared_;
  std::atomic<bool> gone_ = false;

  // These members are guarded by the mutex of `shared_`.
  bool answered_ = false;
  bool ended_ = false;
  std::optional<Response> response_;
  std::string unsent_;  // of a stream
};

}  // namespace lictor::httpd
