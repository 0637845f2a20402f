#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/routes.h"
#include "base/assert.h"

namespace lictor::admin {

/// A daemon whose answers the test sets.
class FakeBackend : public Backend {
 public:
  std::optional<Status> status() override { return known; }
  ConsulTrouble consul_trouble() override { return trouble; }
  std::optional<std::string> why(const std::string& queue, const std::string& id) override {
    if (queue != "q" || id != "a/b") return std::nullopt;
    return R"([{"reason":"paused","text":"the queue is paused"}])";
  }
  Result<cluster::Fleet> fleet(const std::string& /*queue*/) override { return members; }
  Result<std::string> ask_member(const std::string& /*queue*/, const std::string& node,
                                 const std::string& target) override {
    asked = node + ' ' + target;
    return member_answers;
  }
  Result<std::string> ask_leader_of(const std::string& /*queue*/, const std::string& id,
                                    const std::string& target) override {
    asked = "leader of " + id + ' ' + target;
    return member_answers;
  }
  std::vector<Answer> ask_leaders(const std::string& /*queue*/,
                                  const std::string& target) override {
    asked = "leaders " + target;
    return leader_answers;
  }

  std::optional<Status> known = Status{};
  ConsulTrouble trouble;
  cluster::Fleet members;
  std::string asked;
  Result<std::string> member_answers = fail(ErrorCode::kFailed, "nobody leads it");
  std::vector<Answer> leader_answers;
};

/// A request whose client has gone: delayed jobs run at once.
class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(Request request) : request_(std::move(request)) {}

  [[nodiscard]] const Request& request() const override { return request_; }
  void answer(Response response) override {
    LICTOR_ASSERT(!answered);
    answered = std::move(response);
  }
  [[nodiscard]] bool gone() const override { return true; }
  void later(std::chrono::milliseconds, std::function<void()> job) override { job(); }
  [[nodiscard]] bool send(std::string_view) override { return false; }
  void end() override {}

  std::optional<Response> answered;

 private:
  const Request request_;
};

}  // namespace lictor::admin
