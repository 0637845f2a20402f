#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/id.h"
#include "lictor/result.h"
#include "lictor/time.h"
#include "net/token_source.h"

namespace lictor::net {

using http::Delivery;
using http::Request;
using http::Response;

/// Where and how to reach Consul. Built from the configuration and Consul's own environment
/// variables (see net/environment.h).
struct Options {
  /// "http://host:port", "https://host:port", "host:port" or "unix:///path"; tried in this order.
  std::vector<std::string> addresses{"http://127.0.0.1:8500"};
  std::string token;       ///< X-Consul-Token; empty: none
  std::string token_file;  ///< read again when it changes; wins over `token`
  std::string basic_auth;  ///< "user:password"
  std::string ca_file, ca_path, client_cert, client_key;  ///< read again within a minute
  std::string tls_server_name;
  bool tls_verify = true;
  // For Consul Enterprise; not sent when empty.
  std::string consul_namespace;  ///< X-Consul-Namespace
  std::string consul_partition;  ///< the admin partition: ?partition=, as Consul's own client does
  std::chrono::milliseconds connect_timeout{1000};
  std::string server = "a Consul agent";  ///< the expected listener, for error messages

  friend bool operator==(const Options&, const Options&) = default;
};

class RateBackoff;

/// Tests use other values.
struct Tuning {
  /// How long an address that failed is avoided: long enough for two of Consul's leader
  /// elections in most cases, short enough that a restarted local agent is soon used again.
  Duration avoid_for = std::chrono::seconds{10};
  Duration check_token_file_every = std::chrono::seconds{1};
  Duration check_ca_path_every = std::chrono::seconds{30};
  /// Short requests under way at once; more wait for a place. These three bound the connections:
  /// idle ones are kept, and a new one is opened only when none is idle.
  std::size_t max_short_requests = 64;
  std::size_t max_urgent_requests = 2;  ///< in addition to those
  /// Blocking queries (http::Watch) under way at once; more take turns.
  std::size_t max_polls = 16;
  std::size_t expected_polls = 0;  ///< the most there may be, if known
  /// Shared by all clients of a process; null: own one.
  std::shared_ptr<RateBackoff> backoff{};
  TokenSource::OnChange on_token_change{};
};

using Callback = std::function<void(Response)>;

/// HTTP to Consul over libcurl's multi interface, on one thread of its own. Thread safe: every
/// method may be called from any thread. Connections are kept alive and reused; TCP_NODELAY.
///
/// Failover: a request that could not be sent (kNotSent) is tried at the next address at once. A
/// lost one is never sent again from here, since only the caller knows whether that is safe, but
/// the next requests prefer the next address. The first address is preferred again after a while
/// (10 s), as the local agent should be.
///
/// A refusal because of a limit of Consul's (http::over_limit) is final for its request, and all
/// requests that are not urgent wait for 0.5 s to 5 s (net/rate_backoff.h). Their time-outs do not
/// run during that wait.
///
/// Destruction ends all requests with kCancelled. A callback that answers kCancelled with another
/// send() would keep the destructor from ever returning.
class Transport {
 public:
  /// Errors: kInvalid (an unusable address, TLS file or token file; the message names it); kFailed
  /// (libcurl cannot start, or ca_path cannot be read). Opens no connection.
  [[nodiscard]] static Result<std::unique_ptr<Transport>> open(Options options, Tuning tuning = {});
  virtual ~Transport() = default;

  /// Returns at once. `done` runs exactly once, on the network thread, and must not block; it runs
  /// also after cancel() and on destruction (kCancelled).
  virtual RequestId send(Request request, Callback done) = 0;

  /// Ends the request at once; its callback runs with kCancelled unless it was already complete.
  virtual void cancel(RequestId request) = 0;

  /// Sends and waits. Don't call it on the network thread.
  [[nodiscard]] Response perform(Request request);

  /// The first perform() that has waited for `after`, and not for a blocking query, calls `notify`,
  /// so that the user of a silent command knows the reason. Call it before any perform().
  void on_slow_reply(Duration after, std::function<void()> notify);

 private:
  Duration slow_after_{};
  std::function<void()> notify_slow_;
  std::once_flag slow_notified_;
};

}  // namespace lictor::net
