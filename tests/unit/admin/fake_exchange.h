#pragma once

#include <memory>

#include <doctest/doctest.h>

#include "fake_backend.h"
#include "unit/contains.h"

namespace lictor::admin {

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
