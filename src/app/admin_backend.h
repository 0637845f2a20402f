#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "admin/backend.h"
#include "net/transport.h"
#include "runtime/loop.h"

namespace lictor::app {

/// Answers the admin face out of the daemon, which lives on the loop's thread. What it refers to
/// must outlive it, and `read_status` the loop's run().
class AdminBackend : public admin::Backend {
 public:
  /// `read_status` runs on the loop's thread.
  AdminBackend(runtime::Loop& loop, net::Transport& transport,
               std::function<admin::Status()> read_status);

  [[nodiscard]] std::optional<admin::Status> status() override;
  [[nodiscard]] std::string consul_trouble() override;

 private:
  runtime::Loop& loop_;
  net::Transport& transport_;
  const std::function<admin::Status()> read_status_;

  std::mutex mutex_;  // for what follows; held while Consul is asked, so that one asks for all
  Instant asked_at_ = Instant::min();
  std::string trouble_;
};

}  // namespace lictor::app
