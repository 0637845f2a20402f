#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/curl_request.h"
#include "exec/runner.h"

namespace lictor::exec {

/// Where an http executor posts to.
struct HttpTarget {
  std::string url;    ///< as configured, with user and password
  std::string shown;  ///< for logs and errors: without user, password, query and fragment
  bool has_user = false;
};

/// Reads "http://host:port/path" or "https://…". Errors: kInvalid; the message does not quote the
/// URL, which may hold a password.
[[nodiscard]] Result<HttpTarget> parse_http_target(const std::string& url);

/// The common part of all requests of one http executor.
struct HttpCall {
  HttpTarget target;
  std::vector<std::pair<std::string, std::string>> headers;  ///< override lictor's own
  std::string token_file;  ///< sent as "Authorization: Bearer …"; "": none
  std::string ca_file;     ///< PEM, read again within a minute; "": the system's CAs
  std::chrono::seconds trusted_for = kTrustedFor;  ///< tests use less
  /// For how long an idle connection is used again; 0: each request has its own.
  Duration keep_alive{};
};

class HttpPost;

/// The request that uses each open socket; null: none. libcurl may close a socket after its request
/// has ended, so this must outlive all handles. Used by one thread.
using SocketOwners = std::map<curl_socket_t, HttpPost*>;

/// One request: the task's record, and the headers Lictor-Task-Id, -Task-Key, -Task-Type,
/// Lictor-Queue, -Attempt, -Fencing-Token and, if there is one, -Deadline (RFC 3339). A value of
/// more than 2 KiB is left out. A passive object of the runner's thread.
class HttpPost : private CurlRequest {
 public:
  /// A longer reply is cut off.
  static constexpr std::size_t kMaxBodyBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10U;

  HttpPost(Attempt attempt, Instant deadline, ExitCallback on_exit);
  ~HttpPost();

  /// Sets libcurl's handle up. `call` and `owners` must outlive this object. Errors: kFailed, the
  /// token file cannot be read; kUnavailable, memory is out.
  [[nodiscard]] Result<void> prepare(const HttpCall& call, SocketOwners& owners);

  /// The end of the attempt, from libcurl's result and the reply.
  [[nodiscard]] Exit conclude(CURLcode code);
  /// The end of an attempt that was stopped.
  [[nodiscard]] Exit stopped() const;

  bool sent = false;  ///< set by the runner: libcurl has the request

  using CurlRequest::easy;
  [[nodiscard]] AttemptId id() const { return attempt_.id; }
  [[nodiscard]] const Attempt& attempt() const { return attempt_; }
  [[nodiscard]] const ExitCallback& on_exit() const { return on_exit_; }

 private:
  friend CurlRequest;
  bool on_handover(int local_port);
  bool on_header(std::string_view line);
  bool on_body(std::string_view bytes);

  void set_sockets(SocketOwners& owners);
  void set_headers(const HttpCall& call, const std::string& token);
  void set_ending(int status, Exit& exit) const;
  void take_result(Exit& exit) const;
  [[nodiscard]] std::string reason(CURLcode code) const;
  [[nodiscard]] bool was_hardly_taken(CURLcode code) const;

  static curl_socket_t on_open(void* self, curlsocktype, curl_sockaddr* address);
  static int on_close(void* owners, curl_socket_t socket);

  const Attempt attempt_;
  const Instant deadline_;
  const ExitCallback on_exit_;
  std::string shown_;
  bool has_token_file_ = false;
  SocketOwners* owners_ = nullptr;
  std::string body_;
  std::size_t head_bytes_ = 0;
  int socket_error_ = 0;  // why there is no socket
  Instant handed_over_at_{};
  bool closed_unread_ = false;  // the receiver closed the connection before it had read everything
  bool too_large_ = false;
};

}  // namespace lictor::exec
