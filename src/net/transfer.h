#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/curl_request.h"
#include "net/endpoint.h"
#include "net/transport.h"

namespace lictor::net {

/// The common part of all requests of a transport.
struct Client {
  Options options;
  std::vector<Endpoint> endpoints;
  std::string partition;  ///< "partition=NAME", percent-encoded; empty: none
};

/// One request on its way, with the libcurl handle that carries it. A passive object of the network
/// thread.
///
///      prepare()                   the connection stands
///   ------------> not handed over ----------------------> handed over --whole reply--> kReplied
///                         | failed: kNotSent                    | failed: kLost
///
/// on_handover() is the line between kNotSent and kLost. A transaction that libcurl sent a second
/// time, and that was carried out the first time, would come back as rejected.
class Transfer : private CurlRequest {
 public:
  /// More than any sensible state of Consul; a longer body would exhaust the daemon's memory.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{512} << 20U;

  Transfer(RequestId id, Request request, Callback done, Instant sent_at);

  /// Lets Consul hold a watch for `wait`, also when it is asked again after an answer.
  void begin_turn(Instant now, std::chrono::milliseconds wait);

  /// Sets the handle up for one attempt at `client.endpoints[endpoint]`, with `time_left` for it.
  /// `ca_bundle`: PEM, of ca_path.
  void prepare(const Client& client, std::size_t endpoint, const std::string& token,
               const std::string& ca_bundle, std::chrono::milliseconds time_left);

  /// Reads libcurl's verdict on the attempt into `response`. Anything short of a whole reply counts
  /// as none: half a body must not say whether a write was applied.
  void conclude(CURLcode code, const Client& client);

  /// Adds a reason to response.error, after the reasons of earlier addresses.
  void add_error(const std::string& reason);
  /// The part of an error that says that an unanswered request may have been carried out; empty if
  /// the request only reads.
  [[nodiscard]] std::string doubt() const;

  /// Whether the request changes nothing in Consul.
  [[nodiscard]] bool is_read() const;

  using CurlRequest::easy;

  const RequestId id;
  Request request;
  Callback done;
  Response response;
  Instant deadline{};
  Instant launched{};  ///< start of the last attempt
  std::size_t endpoint = 0;
  std::uint64_t tried = 0;  ///< a bit for each address
  bool running = false;     ///< in the multi handle

 private:
  friend CurlRequest;
  bool on_handover(int) { return hand_over(is_read()); }
  bool on_header(std::string_view line);
  bool on_body(std::string_view bytes);

  void set_connection(const Client& client, const Endpoint& to);
  /// Bodies go with PUT and POST, also empty ones, so that Consul gets a Content-Length.
  void set_method();
  void set_headers(const Options& options, const std::string& token);
  /// The server refused our certificate and has read nothing: kNotSent, although it was connected.
  [[nodiscard]] bool certificate_refused() const;
  [[nodiscard]] std::string lateness() const;
  [[nodiscard]] std::string reason(CURLcode code, const std::string& server) const;

  CurlList connect_to_;
  std::string url_;
  std::chrono::milliseconds time_{};  ///< for an answer; a watch: its turn plus the time-out
  std::string wait_;                  ///< for a watch: "&wait=500ms"
  std::chrono::milliseconds connect_within_{};
  bool too_large_ = false;
};

}  // namespace lictor::net
