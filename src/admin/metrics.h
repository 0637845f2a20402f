#pragma once

// The exposition of /metrics, in Prometheus' text format. Names and labels follow Prometheus'
// rules: base units, counters end in _total, and every label has a bounded number of values,
// whatever producers write: `type` is a type of the configuration, or "other".
//
// Two kinds of figures come together at a scrape:
//
//   loop's thread      on_fact(), on_commit() --mutex_--> counters, histograms --+
//   network's threads  on_reply() --the registry's own locks---------------------+--> text()
//   the loop's answer  Status --> gauges, made again for each scrape ------------+
//
// Counters live from the daemon's start to its end, so that rate() sees no reset at a change of
// leaders. Gauges that only a leader knows are left out while this daemon follows: a value of its
// last term would be added to the sum over hosts.
//
// Every series of a queue and a type exists from the start. Prometheus takes a series that begins
// at 1 for one that did not grow, so a first failure would raise no alert.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "admin/routes.h"
#include "runtime/observer.h"

namespace lictor::admin {

/// Counts the events of the queues. Thread safe.
class Metrics : public runtime::Observer {
 public:
  Metrics();
  ~Metrics() override;

  /// The types that `queue` has executors for; other types count as "other". Types stay known when
  /// a reload removes their executor.
  void set_types(const std::string& queue, const std::set<std::string>& types);

  /// Runs on the loop's thread, and takes no more than two searches by name.
  void on_fact(const std::string& queue, const core::Fact& fact) override;
  void on_commit(const std::string& queue, std::size_t operations) override;
  /// Runs on any thread. Counts each request, but times only answered ones, and no blocking query:
  /// its time says when something changed.
  void on_reply(const std::string& queue, std::string_view request, const http::Response& response,
                Duration took) override;

  /// The exposition (version 0.0.4) of all counters, and of `status` as it is now.
  [[nodiscard]] std::string text(const Status& status) const;

 private:
  struct Families;
  struct OfType;
  struct OfQueue;
  /// Call it with mutex_ held.
  OfQueue& queue(const std::string& name);

  std::mutex mutex_;
  const std::unique_ptr<Families> families_;
  std::map<std::string, std::unique_ptr<OfQueue>, std::less<>> queues_;
};

}  // namespace lictor::admin
