#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/base64.h"
#include "client/client.h"
#include "net/transport.h"
#include "unit/contains.h"

namespace lictor::client::test {

inline http::Response reply(int status, std::string body, std::uint64_t index = 0) {
  http::Response response;
  response.delivery = http::Delivery::kReplied;
  response.status = status;
  response.body = std::move(body);
  response.consul_index = index;
  response.endpoint = "http://consul";
  return response;
}

inline http::Response undelivered(http::Delivery delivery, std::string error = "reset") {
  http::Response response;
  response.delivery = delivery;
  response.error = std::move(error);
  return response;
}

inline std::string entry(const std::string& key, const std::string& value,
                         std::uint64_t create_index = 7, const std::string& session = {}) {
  return R"([{"LockIndex":0,"Key":")" + key + R"(","Flags":5,"Value":")" + base64_encode(value) +
         "\"" + (session.empty() ? "" : R"(,"Session":")" + session + '"') + R"(,"CreateIndex":)" +
         std::to_string(create_index) + R"(,"ModifyIndex":)" + std::to_string(create_index) + "}]";
}

/// A list of two entries.
inline std::string listing(const std::string& one, const std::string& other) {
  return one.substr(0, one.size() - 1) + "," + other.substr(1);
}

/// An entry within a transaction's answer.
inline std::string result(const std::string& key, const std::string& value,
                          std::uint64_t create_index = 7) {
  const std::string list = entry(key, value, create_index);
  return R"({"Results":[{"KV":)" + list.substr(1, list.size() - 2) + R"(}],"Errors":null})";
}

inline std::string txn_error(std::size_t op, const std::string& what) {
  return R"({"Results":null,"Errors":[{"OpIndex":)" + std::to_string(op) + R"(,"What":")" + what +
         R"("}]})";
}

/// Answers each request with the next of `replies`, and remembers the requests.
class FakeConsul : public net::Transport {
 public:
  explicit FakeConsul(std::deque<http::Response> replies) : replies_(std::move(replies)) {}

  RequestId send(net::Request request, net::Callback done) override {
    asked.push_back(std::move(request));
    REQUIRE_FALSE(replies_.empty());
    http::Response response = std::move(replies_.front());
    replies_.pop_front();
    done(std::move(response));
    return RequestId{asked.size()};
  }
  void cancel(RequestId) override {}

  void add(http::Response response) { replies_.push_back(std::move(response)); }
  [[nodiscard]] bool all_asked() const { return replies_.empty(); }

  std::vector<net::Request> asked;

 private:
  std::deque<http::Response> replies_;
};

/// A client of queue "q" below "lictor/".
inline lictor::Client client_of(net::Transport& consul) {
  return lictor::Client{
      std::make_unique<lictor::Client::Impl>(consul, "q", wire::Layout::under("lictor/", "q"))};
}

/// The answer to a question for the names of a task's later dead letters.
inline http::Response no_names() { return reply(404, "", 9); }

}  // namespace lictor::client::test
