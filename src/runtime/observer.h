#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/http.h"
#include "core/effect.h"
#include "lictor/time.h"

namespace lictor::runtime {

/// Gets the events of the queues, for metrics and event streams. Calls come from the loop's and the
/// network's threads, so an observer is thread safe, and it must not block.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void on_fact(const std::string& queue, const core::Fact& fact) = 0;
  /// A transaction with this many operations was sent.
  virtual void on_commit(const std::string& /*queue*/, std::size_t /*operations*/) {}
  /// Consul answered, or did not. `request` names the request ("list_tasks"); `took` is the time
  /// from sending it to the answer, a blocking query's wait included.
  virtual void on_reply(const std::string& /*queue*/, std::string_view /*request*/,
                        const http::Response& /*response*/, Duration /*took*/) {}
};

}  // namespace lictor::runtime
