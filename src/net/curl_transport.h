#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <curl/curl.h>

#include "net/failover.h"
#include "net/token_source.h"
#include "net/transfer.h"
#include "net/transport.h"

namespace lictor::net {

/// What the tests set otherwise.
struct Tuning {
  /// How long an address that failed is avoided: two of Consul's own leader elections at most
  /// times, and short enough that a restarted local agent is soon used again.
  Duration avoid_for = std::chrono::seconds{10};
  Duration check_token_file_every = std::chrono::seconds{1};
  /// Short requests under way at once; more wait for a place. Consul accepts 200 connections from
  /// one address (limits.http_max_conns_per_client) and resets further ones without an answer;
  /// this leaves the larger part to long polls and to the other programs of the host.
  std::size_t max_short_requests = 64;
  /// Idle connections kept beside the busy ones.
  std::size_t max_idle_connections = 16;
};

/// Whether the caller is a transport's own thread, which must not wait for a reply.
[[nodiscard]] bool on_network_thread();

/// The transport. One thread owns libcurl's multi handle and everything below `inbox_`; the others
/// put orders into the inbox and wake it.
///
///   send() --> inbox --> waiting (short requests, for one of max_short_requests places)
///                |           |                     | time-out: kNotSent; cancel(): kCancelled
///                +-----------+--> running --> done: callback
///                 long polls        |  ^
///                                   +--+ kNotSent and an address left: there, at once
///
/// Destruction ends all of them with kCancelled. A callback that answers kCancelled with another
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
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  using TransferPtr = std::unique_ptr<Transfer>;
  // Either a new request, or, without a callback, the order to cancel one.
  struct Order {
    RequestId id;
    Request request;
    Callback done;
    Instant sent_at{};
  };

  CurlTransport(Client client, Tuning tuning);
  [[nodiscard]] Result<void> start(const Options& options);
  void post(Order order);

  void run();
  bool take_orders();
  void accept(Order order);
  void start_waiting(Instant now);
  void expire_waiting(Instant now);
  void attempt(Instant now, TransferPtr transfer);
  void launch(TransferPtr transfer);
  void collect_done();
  void conclude(TransferPtr transfer, CURLcode code);
  void withdraw(Transfer& transfer);
  void cancel_now(RequestId id);
  void cancel_all();
  void finish(TransferPtr transfer);
  void limit_connections();
  [[nodiscard]] int poll_timeout_ms(Instant now);

  const Client client_;
  const Tuning tuning_;
  TokenSource token_;

  std::atomic<std::uint64_t> last_id_ = 0;
  std::mutex mutex_;
  std::vector<Order> inbox_;
  bool stopping_ = false;

  // The network thread's own.
  std::vector<Order> orders_;
  std::vector<TransferPtr> pool_;  // before multi_: handles are freed after they left it
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unordered_map<RequestId, TransferPtr> live_;  // running and waiting
  std::deque<RequestId> waiting_;                    // some may be gone from live_
  Instant waiting_expires_ = Instant::max();         // no later than the first deadline of them
  std::size_t short_running_ = 0;
  std::size_t running_ = 0;
  std::size_t connection_limit_ = 0;
  Failover failover_;

  std::thread thread_;
};

}  // namespace lictor::net
