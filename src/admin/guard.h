#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "httpd/exchange.h"

namespace lictor::admin {

using httpd::Exchange;
using httpd::ExchangePtr;
using httpd::Request;
using httpd::Response;

/// {"error": message}, and a line feed.
[[nodiscard]] Response error_response(int status, std::string_view message);

/// What a GET of a route reveals.
enum class Access {
  kOpen,  ///< states and counts
  kContents,  ///< tasks, schedules and output: takes the token once one is set, except over a unix socket
};

/// Decides who may ask what. A web page can make a browser on this host send requests here, so
/// listening on the loopback alone protects nothing. Refuses a Host that is not a name of this
/// daemon (DNS rebinding) and requests of pages of another origin.
class Guard {
 public:
  struct Options {
    /// Names of this daemon besides the loopback's and the connection's own address: of the node,
    /// of the host, of the listen addresses. Without a port.
    std::vector<std::string> hosts;
    /// The bearer token that a change needs where the listener is not trusted; empty: there is
    /// none, and such changes are refused. Thread safe.
    std::function<std::string()> token;
  };

  explicit Guard(Options options) : options_(std::move(options)) {}

  /// The refusal; nothing: the request may pass. Every method but GET and HEAD is a change. Thread
  /// safe.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
  /// The same for a GET or HEAD of a route.
  [[nodiscard]] std::optional<Response> refuse_read(const Request& request, Access access) const;

 private:
  [[nodiscard]] bool is_ours(std::string_view host, const Request& request) const;
  [[nodiscard]] std::optional<Response> refuse_change(const Request& request) const;

  Options options_;
};

}  // namespace lictor::admin
