#pragma once

// The HTTP client for Consul: libcurl's multi interface on the thread of its owner. Three kinds of
// requests share the connections:
//
//   short       a few at a time, the others wait in waiting_; urgent ones go first and have places
//               of their own, so that a renewal never waits for a slow listing
//   watches     blocking queries that take turns where they are more than their places; an answer
//               without news is kept back, and the query asked again (net/poll_turns.h)
//   long polls  blocking queries that say themselves how long they wait; they start at once
//
//   a request: send() --> place? --> next address --> libcurl --> conclude()
//                           |  ^          ^                          |
//                        no |  |          +---- kNotSent ------------+--> finish(): callback
//                           v  +--- a watch without news ------------+
//                      time-out: kNotSent; cancel(): kCancelled
//
// The rule above all others: a write is sent once. A request goes to the next address only if
// Consul has read nothing of it (kNotSent). Any other failure is kLost: the write may have been
// carried out, even later (consul.md 6.5), and only the caller can find out.
//
// A step does all possible work: libcurl's sockets and timers, finished requests, expired ones,
// then new starts in the places that became free. Callbacks run within it and may call send() and
// cancel(), so no iterator is held across a callback.

#include <sys/epoll.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <curl/curl.h>

#include "base/unique_fd.h"
#include "base/wake_event.h"
#include "lictor/result.h"
#include "net/poll_turns.h"
#include "net/rate_backoff.h"
#include "net/tls_files.h"
#include "net/token_source.h"
#include "net/transfer.h"
#include "net/transport.h"

namespace lictor::net {

/// Chooses the next address. A failed one is avoided for a while; the earliest in the list that is
/// not avoided is preferred, so that the local agent, listed first, is used again. A passive object
/// of the network thread.
class Failover {
 public:
  static constexpr std::size_t kMaxAddresses = 64;  ///< a request keeps the tried ones in a word

  Failover(std::size_t addresses, Duration avoid_for)
      : avoid_for_(avoid_for), avoided_until_(addresses) {}

  /// The next address whose bit in `tried` is not set; std::nullopt if all bits are set.
  [[nodiscard]] std::optional<std::size_t> next(Instant now, std::uint64_t tried) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < avoided_until_.size(); ++i) {
      if ((tried >> i & 1U) != 0) continue;
      if (avoided_until_[i] <= now) return i;
      // All failed lately: the address with the oldest failure is the likeliest to be back.
      if (!best || avoided_until_[i] < avoided_until_[*best]) best = i;
    }
    return best;
  }

  void failed(Instant now, std::size_t address) { avoided_until_[address] = now + avoid_for_; }
  void worked(std::size_t address) { avoided_until_[address] = Instant{}; }

 private:
  Duration avoid_for_;
  std::vector<Instant> avoided_until_;
};

/// Sends requests to Consul on its owner's thread: the owner waits for fd() to become readable or
/// for next_deadline(), and calls step(). Transport does so on its own thread. An owner with a loop
/// saves two changes of thread for each request.
///
/// Not thread safe except for wake(): all other calls on one thread. No call blocks.
///
/// Destruction ends all requests with kCancelled. A callback that answers kCancelled with another
/// send() would keep the destructor from ever returning.
class ConsulClient {
 public:
  /// As Transport::open().
  [[nodiscard]] static Result<std::unique_ptr<ConsulClient>> open(Options options,
                                                                  Tuning tuning = {});
  ~ConsulClient();
  ConsulClient(const ConsulClient&) = delete;
  ConsulClient& operator=(const ConsulClient&) = delete;

  /// Begins to send at once when there is a place. `done` runs exactly once and must not block:
  /// within step(), or within send(), cancel() or the destructor.
  RequestId send(Request request, Callback done);
  /// Sends a request that got its id, and its time of sending, elsewhere.
  void send(RequestId id, Request request, Callback done, Instant sent_at);
  /// As Transport::cancel(); the callback runs before it returns.
  void cancel(RequestId request);
  void cancel_all();
  /// From any thread: makes fd() readable.
  void wake() noexcept { wake_.wake(); }

  /// Readable when there is work to do. An epoll instance: to be polled, not read.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  /// Sends and receives as much as possible, waiting up to `wait`, and runs the callbacks of
  /// finished requests.
  void step(std::chrono::milliseconds wait = {});
  [[nodiscard]] Instant next_deadline() const;
  /// Whether no request is under way or waits.
  [[nodiscard]] bool idle() const { return live_.empty(); }

 private:
  using TransferPtr = std::unique_ptr<Transfer>;

  ConsulClient(Client client, Tuning tuning);
  [[nodiscard]] Result<void> start();

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long timeout_ms, void* self);
  void watch(int socket, std::uint32_t events) const;
  /// Lets libcurl work on one socket, or on its timers. Callbacks wait for collect_done().
  void act(curl_socket_t socket, int events);
  void act_on(const epoll_event& event);
  void act_on_time();

  void start_waiting(Instant now);
  void start_polls(Instant now);
  /// `held`: Consul's limits hold back all but urgent requests.
  [[nodiscard]] bool has_place(const Transfer& transfer, bool held) const;
  /// Whether Consul's limits hold requests back.
  [[nodiscard]] bool is_held(Instant now);
  /// When a waiting request gives up. Its time-out is for Consul's answer, so it does not run while
  /// requests before it are answered, or are held back.
  [[nodiscard]] Instant end_in_line(const Transfer& transfer) const;
  [[nodiscard]] bool takes_turns(const Transfer& transfer, Instant now) const;
  void expire_waiting(Instant now);
  void attempt(Instant now, TransferPtr transfer);
  void collect_done();
  /// Ends one attempt and reports it to failover and backoff. Then it tries the next address, lets
  /// a watch wait for its next turn, or finishes.
  void conclude(TransferPtr transfer, CURLcode code);
  void withdraw(Transfer& transfer);
  /// Runs the callback last, when the client is consistent: it may send the next request.
  void finish(TransferPtr transfer);

  const Client client_;
  const Tuning tuning_;
  TokenSource token_;
  TokenSource ca_bundle_{read_ca_path};
  std::uint64_t last_id_ = 0;  // of send() without an id
  UniqueFd epoll_;
  WakeEvent wake_;

  CurlMulti multi_;
  Instant timer_ = Instant::max();                   // when libcurl wants to be called
  bool uncollected_ = false;                         // some request may be done
  std::unordered_map<RequestId, TransferPtr> live_;  // running and waiting
  std::deque<RequestId> waiting_;                    // some may be gone from live_
  Instant waiting_expires_ = Instant::max();         // no later than the first deadline in waiting_
  std::size_t short_running_ = 0;
  PollTurns turns_;
  const std::shared_ptr<RateBackoff> backoff_;
  bool was_held_ = false;                // by backoff_, at the last look
  Instant line_moved_ = Instant::min();  // a short request was answered, or backoff_ let them go
  Failover failover_;
};

}  // namespace lictor::net
