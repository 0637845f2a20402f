#pragma once

#include <map>
#include <mutex>
#include <string>

#include "runtime/observer.h"

namespace lictor::runtime {

/// The refusals of Consul that keep a daemon from working: for the session, the lock, the lists.
/// Thread safe.
class Refusals : public Observer {
 public:
  void on_fact(const std::string& /*queue*/, const core::Fact& /*fact*/) override {}
  void on_reply(const std::string& queue, std::string_view request, const http::Response& response,
                Duration took) override;

  /// A refusal that has lasted for a second, in words; empty: there is none. A new queue's first
  /// list is missing at first, and Consul answers the same for a list without rights.
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
