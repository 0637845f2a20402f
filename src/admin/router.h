#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/guard.h"
#include "admin/http.h"

namespace lictor::admin {

using Handler = std::function<Response(const Request&)>;

/// Which handler answers which path. Filled before it is asked; then thread safe as far as its
/// handlers are.
class Router {
 public:
  explicit Router(Guard guard) : guard_(std::move(guard)) {}

  /// `pattern` is a path, in which one "*" stands for any text that is not empty, slashes included:
  /// "/v1/tasks/*/why". `method` is "GET", which answers HEAD too, or one that changes something.
  /// The first that fits wins.
  void add(std::string method, std::string pattern, Handler handler);

  /// What is to be answered before any of the body is read: guard, unknown path, wrong method.
  /// Nothing: handle() may be asked.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
  [[nodiscard]] Response handle(Request request) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    Handler handler;
  };
  [[nodiscard]] const Route* find(const Request& request, std::string* wildcard) const;

  Guard guard_;
  std::vector<Route> routes_;
};

}  // namespace lictor::admin
