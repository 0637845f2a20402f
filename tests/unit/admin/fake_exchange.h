#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "admin/router.h"
#include "unit/contains.h"

namespace lictor::admin {

/// A request whose client has gone: delayed jobs run at once.
class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(Request request) : request_(std::move(request)) {}

  [[nodiscard]] const Request& request() const override { return request_; }
  void answer(Response response) override { answered = std::move(response); }
  [[nodiscard]] bool gone() const override { return true; }
  void later(std::chrono::milliseconds, std::function<void()> job) override { job(); }
  [[nodiscard]] bool send(std::string_view) override { return false; }
  void end() override {}

  std::optional<Response> answered;

 private:
  const Request request_;
};

inline Request make_request(std::string method, std::string target) {
  Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.url = *httpd::parse_url(request.target);
  request.trusted_listener = true;
  return request;
}

inline Response ask(const Router& router, Request request) {
  const auto exchange = std::make_shared<FakeExchange>(std::move(request));
  router.handle(exchange);
  REQUIRE(exchange->answered);
  return *exchange->answered;
}

}  // namespace lictor::admin
