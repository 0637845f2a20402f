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

/// A request without a connection. Delayed jobs run at once, after `on_later` was called with their
/// number; without an `on_later` the client has gone.
class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(Request request, std::function<void(int)> on_later = {})
      : request_(std::move(request)), on_later_(std::move(on_later)) {}

  [[nodiscard]] const Request& request() const override { return request_; }
  void answer(Response response) override { answered = std::move(response); }
  [[nodiscard]] bool gone() const override { return !on_later_; }
  void later(std::chrono::milliseconds, std::function<void()> job) override {
    if (on_later_) on_later_(++jobs_);
    job();
  }
  [[nodiscard]] bool send(std::string_view) override { return false; }
  void end() override {}

  std::optional<Response> answered;

 private:
  const Request request_;
  const std::function<void(int)> on_later_;
  int jobs_ = 0;
};

inline Request make_request(std::string method, std::string target) {
  Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.url = *httpd::parse_url(request.target);
  request.trusted_listener = true;
  return request;
}

inline Response ask(const Router& router, Request request, std::function<void(int)> on_later = {}) {
  const auto exchange = std::make_shared<FakeExchange>(std::move(request), std::move(on_later));
  router.handle(exchange);
  REQUIRE(exchange->answered);
  return *exchange->answered;
}

}  // namespace lictor::admin
