#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "admin/guard.h"
#include "lictor/result.h"

namespace lictor::admin {

/// The status that fits the error's code, and its message.
[[nodiscard]] Response error_response(const Error& error);
/// The value on one line. Bytes that are not UTF-8 are replaced.
[[nodiscard]] Response json_response(int status, const nlohmann::ordered_json& value);

/// A request, as its handler gets it.
struct Call {
  const Request& request;
  std::string_view wildcard;    ///< the part of the path that "*" in the route's pattern matched
  const ExchangePtr& exchange;  ///< for an answer that comes later
};

/// Answers at once, or returns nothing and answers `call.exchange` later. An error is answered as
/// error_response() has it.
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
  /// Whether a handler answers it without Consul: what is public.
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
