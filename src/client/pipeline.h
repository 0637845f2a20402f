#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/http.h"
#include "lictor/time.h"
#include "net/transport.h"

namespace lictor::client {

/// Transactions under way. Half as many are 5% slower.
inline constexpr std::size_t kAtOnce = 16;

/// Sends requests in order, a few at once. The network thread sends the next one as soon as an
/// answer arrives. next() returns the answers in the order of the requests.
///
/// With `came_early`, each request depends on the one before it. A request that Consul carried out
/// too early is sent again; if all before it were answered when it was sent, its answer is final.
/// Requests sent together race in Consul, so each is delayed by a third of the usual answer time
/// after the one before it (30 of 800 transactions come early then, instead of 110 to 150).
///
/// An answer other than 200 stops further sending until next() has returned it: its meaning may
/// decide about the rest.
///
/// For one thread beside the network's. The destructor waits for requests under way and drops the
/// rest.
class Pipeline {
 public:
  using Judge = std::function<bool(const http::Response&)>;

  /// `transport` must outlive it. `came_early` is asked on the network's thread.
  Pipeline(net::Transport& transport, std::size_t at_once, Judge came_early = {})
      : transport_(transport), at_once_(at_once), came_early_(std::move(came_early)) {}
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void add(http::Request request);
  struct Answer {
    http::Response response;
    Instant at{};  ///< when it came
  };
  /// The answer to the oldest; waits for it.
  [[nodiscard]] Answer next();
  /// Drops all that are not under way and returns how many. Nothing is sent again.
  std::size_t drop_unsent();

 private:
  enum class State { kWaiting, kUnderWay, kAnswered };
  struct Call {
    http::Request request;
    State state = State::kWaiting;
    bool overlaps = false;  // was sent while one before it was under way
    Instant sent_at{};
    std::optional<Answer> answer{};  // an early one if the call is sent again
  };
  using Lock = std::unique_lock<std::mutex>;

  void send(Lock& lock);
  [[nodiscard]] std::deque<std::shared_ptr<Call>>::iterator next_waiting();
  [[nodiscard]] bool may_send();
  [[nodiscard]] Instant next_turn() const;
  void answered(const std::shared_ptr<Call>& call, http::Response response);

  net::Transport& transport_;
  const std::size_t at_once_;
  const Judge came_early_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> calls_;
  std::size_t under_way_ = 0;
  bool held_up_ = false;
  Instant last_sent_{};
  Duration usual_time_{};  // of an answer
  bool sending_ = false;   // one thread at a time sends, to keep the order
};

}  // namespace lictor::client
