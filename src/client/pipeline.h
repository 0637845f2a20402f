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

/// Transactions; half as many are a twentieth slower.
inline constexpr std::size_t kAtOnce = 16;

/// Requests that are sent in their order, a few under way at a time: the next leaves on the
/// network's thread as soon as an answer has come, without waiting for ours. Their answers are
/// taken in the order of the requests.
///
/// With `came_early` each follows the one before it. One whose answer says no more than that it
/// came before that one is sent again, in its place; if it was sent when all before it were
/// answered, that is its answer. Two that leave together race each other through Consul, and the
/// second may be carried out first. Consul answers them together, too; so one that has another
/// before it leaves a while after that: a third of the time that an answer takes (of 800
/// transactions some 30 are ahead of the one before them then, in place of 110 to 150).
///
/// What is answered by anything else but 200 holds up what was not sent yet, until next() is asked
/// for its answer: what the earlier answer means may be settled before that.
///
/// For one thread, beside the network's own. Waits for what is under way when it goes; what was not
/// sent never is.
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
  /// How many were dropped: the last ones. Nothing is sent again, either.
  std::size_t drop_unsent();

 private:
  enum class State { kWaiting, kUnderWay, kAnswered };
  struct Call {
    http::Request request;
    State state = State::kWaiting;
    bool overlaps = false;  // was sent while one before it was under way
    Instant sent_at{};
    std::optional<Answer> answer{};  // of one that is to be sent again, the early one
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
  Duration usual_time_{};  // that an answer takes
  bool sending_ = false;   // one thread at a time, so that they leave in their order
};

}  // namespace lictor::client
