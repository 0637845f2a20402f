#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/http.h"
#include "lictor/time.h"
#include "net/transport.h"

namespace lictor::client {

/// Transactions under way. Half as many are 5% slower.
inline constexpr std::size_t kAtOnce = 16;

/// Sends requests in order, a few at once. The network thread sends the next one as soon as an
/// answer arrives. next() returns the answers in the order of the requests.
///
/// An answer other than 200 stops further sending until next() has returned it: its meaning may
/// decide about the rest.
///
/// For one thread beside the network's. The destructor waits for requests under way and drops the
/// rest.
class Pipeline {
 public:
  /// `transport` must outlive it.
  Pipeline(net::Transport& transport, std::size_t at_once)
      : transport_(transport), at_once_(at_once) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void add(http::Request request);
  struct Answer {
    http::Response response;
    Instant at{};  ///< when it came
  };
  /// Waits for the answer to the oldest request.
  [[nodiscard]] Answer next();
  /// Drops the requests that are not under way, and returns how many.
  std::size_t drop_unsent();

 private:
  enum class State { kWaiting, kUnderWay, kAnswered };
  struct PendingRequest {
    http::Request request;
    State state = State::kWaiting;
    std::optional<Answer> answer{};
  };
  using Lock = std::unique_lock<std::mutex>;

  void send(Lock& lock);
  [[nodiscard]] std::deque<std::shared_ptr<PendingRequest>>::iterator next_waiting();
  [[nodiscard]] bool may_send();
  void answered(const std::shared_ptr<PendingRequest>& call, http::Response response);

  net::Transport& transport_;
  const std::size_t at_once_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<PendingRequest>> calls_;
  std::size_t under_way_ = 0;
  bool held_up_ = false;
  bool sending_ = false;  // one thread at a time sends, to keep the order
};

}  // namespace lictor::client
