#pragma once

#include <map>
#include <mutex>
#include <string>

#include "runtime/observer.h"

namespace lictor::runtime {

/// What Consul refuses now of what a daemon cannot do without: the session, the lock, the lists.
/// Thread safe.
class Refusals : public Observer {
 public:
  void on_fact(const std::string& /*queue*/, const core::Fact& /*fact*/) override {}
  void on_reply(const std::string& queue, std::string_view request, const http::Response& response,
                Duration took) override;

  /// One of them that has lasted for a second, in words; empty: nothing is refused. The first list
  /// of a new queue is not there yet, which Consul says of a list without rights as well.
  [[nodiscard]] std::string first(Instant now) const;

 private:
  mutable std::mutex mutex_;
  struct Refusal {
    Instant since{}, last{};
    std::string text;
  };
  std::map<std::string, Refusal> refused_;  // by queue and subject
};

}  // namespace lictor::runtime
