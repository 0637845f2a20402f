#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "httpd/exchange.h"
#include "lictor/result.h"

namespace lictor::admin {

using httpd::Exchange;
using httpd::ExchangePtr;
using httpd::Request;
using httpd::Response;

/// {"error": message}, and a line feed.
[[nodiscard]] Response error_response(int status, std::string_view message);

/// The status for the error's code, and its message.
[[nodiscard]] Response error_response(const Error& error);
/// The value on one line. Bytes that are not UTF-8 are replaced.
[[nodiscard]] Response json_response(int status, const nlohmann::ordered_json& value,
                                     int indent = -1);

/// Who may read a route.
enum class Access {
  kPublic,   ///< health, metrics, and files that are equal in every daemon: the page's, the manual
  kPrivate,  ///< takes the token once one is set
};

/// Decides who may ask what. Once a token is set, all requests but Access::kPublic need it. The
/// loopback is no exception: any user and any job of this host reaches it, and so does everybody
/// behind a proxy on this host. The only exception is a unix socket: its file says who may connect.
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
    /// The bearer token; empty: there is none, and changes are accepted only on the loopback and on
    /// unix sockets. Thread safe.
    std::function<std::string()> token;
  };

  explicit Guard(Options options) : options_(std::move(options)) {}

  /// The refusal; std::nullopt if the request may pass. Every method but GET and HEAD is a change.
  /// Thread safe.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
  /// The refusal of a GET or HEAD of a route; std::nullopt if it may pass.
  [[nodiscard]] std::optional<Response> refuse_read(const Request& request, Access access) const;

 private:
  [[nodiscard]] bool is_ours(std::string_view host, const Request& request) const;
  [[nodiscard]] bool is_own_page(std::string_view origin, std::string_view host) const;
  [[nodiscard]] std::optional<Response> refuse_change(const Request& request) const;
  [[nodiscard]] std::optional<Response> ask_for_token(const Request& request) const;

  Options options_;
};

/// A request, as its handler gets it.
struct Call {
  const Request& request;
  std::string_view wildcard;    ///< the part of the path that "*" in the route's pattern matched
  const ExchangePtr& exchange;  ///< for an answer that comes later
};

/// Answers at once, or returns nothing and answers `call.exchange` later. An error is answered by
/// error_response().
using Handler = std::function<Result<std::optional<Response>>(const Call& call)>;

/// Maps paths to handlers. Filled before the first request; then as thread safe as its handlers.
class Router {
 public:
  explicit Router(Guard guard) : guard_(std::move(guard)) {}

  /// `pattern` is a path, in which one "*" stands for any text that is not empty, slashes included:
  /// "/v1/tasks/*/why". `method` is "GET", which answers HEAD too, or one that changes something.
  /// The first match wins.
  void add(std::string method, std::string pattern, Access access, Handler handler);
  void add(std::string method, std::string pattern, Handler handler) {
    add(std::move(method), std::move(pattern), Access::kPrivate, std::move(handler));
  }

  /// The answer before the body is read: guard, unknown path, wrong method. std::nullopt: handle()
  /// may be called.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
  /// Whether a handler answers it without Consul: all public routes.
  [[nodiscard]] bool is_quick(const Request& request) const;
  void handle(const ExchangePtr& exchange) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    Access access;
    Handler handler;
  };
  [[nodiscard]] const Route* find(const Request& request, std::string_view* wildcard) const;

  Guard guard_;
  std::vector<Route> routes_;
};

}  // namespace lictor::admin
