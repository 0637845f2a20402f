#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.h"
#include "runtime/loop.h"

namespace lictor::runtime {

/// Keeps the service `lictor` registered with the local Consul agent, with a TTL check that the
/// loop passes and, while this daemon leads a queue, the tag `leader`. For people and load
/// balancers; nothing in lictor relies on it, so a failure is only tried again.
class Registration : public LoopMember {
 public:
  /// `admin_urls`: of the admin API. The first address that others can reach is the service's.
  Registration(std::string node, std::string version, const std::vector<std::string>& admin_urls,
               net::Transport& transport);

  /// Sets the queues that are led from here.
  void set_leading(std::vector<std::string> queues);
  /// Takes the service out of the catalog; waits for the answer.
  void withdraw();

  void step(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return next_at_; }

 private:
  void send_registration();

  std::string node_;
  std::string version_;
  std::string address_;  // empty: the node's
  int port_ = 0;         // 0: none
  net::Transport& transport_;
  std::vector<std::string> leading_;
  Instant register_at_{};
  /// Consul did not take the last registration; set on the transport's thread.
  const std::shared_ptr<std::atomic<bool>> again_ = std::make_shared<std::atomic<bool>>(false);
  Instant next_at_{};
};

}  // namespace lictor::runtime
