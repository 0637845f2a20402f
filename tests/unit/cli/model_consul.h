#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/clock.h"
#include "base/host_name.h"
#include "base/kv_name.h"
#include "dev/model.h"
#include "httpd/server.h"
#include "net/transport.h"
#include "wire/consul.h"

namespace lictor::cli::test {

/// A Consul of one agent in this process; `fault` may replace one of its answers. No request waits
/// for a change longer than `on_wait` takes. send() is thread safe, as that of any transport.
class ModelConsul : public net::Transport {
 public:
  explicit ModelConsul(std::string node = "dev", bool refuses_names = false)
      : model_{{1, std::move(node), refuses_names}} {}

  RequestId send(net::Request request, net::Callback done) override {
    const std::lock_guard lock{mutex_};
    const std::size_t number = asked_++;
    if (number == faulty) {
      done(fault);
      return RequestId{number + 1};
    }
    if (refuse) {
      if (auto refusal = refuse(request)) {
        done(*std::move(refusal));
        return RequestId{number + 1};
      }
    }
    auto answer = model_.handle(boot_now(), request);
    if (!answer && on_wait) {
      std::exchange(on_wait, {})();
      answer = model_.handle(boot_now(), request);
    }
    if (!answer) answer = model_.handle(boot_now(), request, true);
    answer->endpoint = "http://consul";
    if (refuses_name(*answer)) ++refused;
    done(*std::move(answer));
    return RequestId{number + 1};
  }
  void cancel(RequestId) override {}

  std::string session(const std::string& name = {}) {
    const nlohmann::json asked{{"Name", name}, {"NodeChecks", nlohmann::json::array()}};
    const std::string made = ask("PUT", "/v1/session/create", asked.dump());
    return nlohmann::json::parse(made).at("ID");
  }
  /// Writes a key; with a `session`, which then holds the key.
  void put(const std::string& key, const std::string& value, const std::string& session = {}) {
    nlohmann::json op{
        {"Verb", session.empty() ? "set" : "lock"}, {"Key", key}, {"Value", base64_encode(value)}};
    if (!session.empty()) op["Session"] = session;
    const auto ops = nlohmann::json::array({{{"KV", op}}});
    const std::string answer = ask("PUT", "/v1/txn", ops.dump());
    REQUIRE_MESSAGE(answer.find(R"("Errors":null)") != std::string::npos, answer);
  }
  /// The member "a" of this host registers in queue q, with its admin API at `url`. Returns its
  /// session.
  std::string join(const std::string& url) {
    const nlohmann::json value{{"node", "a"}, {"host", host_name()}, {"admin", {url}}};
    const std::string made = session();
    put("lictor/q/members/a", value.dump(), made);
    return made;
  }
  void release(const std::string& key, const std::string& session) {
    REQUIRE(ask("PUT", wire::kv_path(key) + "?release=" + session) == "true");
  }
  /// `path`: the key, percent-encoded.
  void put_bytes(const std::string& path, const std::string& value) {
    REQUIRE(ask("PUT", "/v1/kv/" + path, value) == "true");
  }
  /// The value of the key; empty: there is none.
  [[nodiscard]] std::string value(const std::string& key) {
    return ask("GET", wire::kv_path(key) + "?raw");
  }
  void remove(const std::string& key) { ask("DELETE", wire::kv_path(key)); }
  [[nodiscard]] std::size_t asked() const { return asked_; }

  std::size_t refused = 0;        ///< requests, for a name in them
  std::size_t faulty = SIZE_MAX;  ///< which request is answered by `fault`
  http::Response fault;
  std::function<std::optional<http::Response>(const net::Request&)> refuse;
  std::function<void()> on_wait;  ///< once, when something waits for a change

 private:
  std::string ask(const std::string& method, const std::string& target,
                  const std::string& body = {}) {
    const std::lock_guard lock{mutex_};
    return model_.handle(boot_now(), {method, target, body}).value().body;
  }

  std::recursive_mutex mutex_;  // `on_wait` and `refuse` may ask as well
  dev::Model model_;
  std::size_t asked_ = 0;
};

inline httpd::Response json_answer(std::string body) {
  return {200, "application/json", std::move(body), {}};
}

/// A member's admin API, with the test's answers.
class FakeAdminApi {
 public:
  using Handler = std::function<httpd::Response(const httpd::Request&)>;
  explicit FakeAdminApi(Handler handler) {
    httpd::ListenOptions listen{.addresses = {"127.0.0.1:0"}};
    auto listeners = httpd::open_listeners(listen).value();
    url_ = listeners.front().url;
    httpd::Options options;
    options.handle = [handler = std::move(handler)](const httpd::ExchangePtr& exchange) {
      exchange->answer(handler(exchange->request()));
    };
    server_ = httpd::Server::start(std::move(listeners), std::move(options)).value();
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::unique_ptr<httpd::Server> server_;
};

}  // namespace lictor::cli::test
