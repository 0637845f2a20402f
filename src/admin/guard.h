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

/// Who may read a route.
enum class Access {
  kPublic,  ///< health, metrics, and what is the same in every daemon: the page's files, the manual
  kPrivate,  ///< takes the token once one is set
};

/// Decides who may ask what. Once a token is set, everything but Access::kPublic takes it, from
/// wherever it is asked: any user and any job of this host reaches the loopback, and behind a proxy
/// on it everybody does. Only a unix socket, whose file says who may connect, takes none.
///
/// A web page can make a browser on this host send requests here. So a Host that is not a name of
/// this daemon (DNS rebinding) and requests of pages of another origin are refused.
class Guard {
 public:
  struct Options {
    /// Names of this daemon besides the loopback's and the connection's own address: of the node,
    /// of the host, of the listen addresses. Without a port.
    std::vector<std::string> hosts;
    /// Names under which others hand requests on to this daemon: a proxy that serves its page, a
    /// published port (admin.names). Pages of these names may ask, whatever Host the proxy sends.
    std::vector<std::string> names;
    /// The bearer token; empty: there is none, and changes are taken over the loopback and unix
    /// sockets alone. Thread safe.
    std::function<std::string()> token;
  };

  explicit Guard(Options options) : options_(std::move(options)) {}

  /// The refusal; std::nullopt if the request may pass. Every method but GET and HEAD is a change.
  /// Thread safe.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
  /// The same for a GET or HEAD of a route.
  [[nodiscard]] std::optional<Response> refuse_read(const Request& request, Access access) const;

 private:
  [[nodiscard]] bool is_ours(std::string_view host, const Request& request) const;
  [[nodiscard]] bool is_own_page(std::string_view origin, std::string_view host) const;
  [[nodiscard]] std::optional<Response> refuse_change(const Request& request) const;
  [[nodiscard]] std::optional<Response> ask_for_token(const Request& request) const;

  Options options_;
};

}  // namespace lictor::admin
