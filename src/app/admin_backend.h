#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "admin/routes.h"
#include "net/transport.h"
#include "runtime/loop.h"

namespace lictor::app {

/// Answers the admin face out of the daemon, which lives on the loop's thread. What it refers to
/// must outlive it, and `read_status` the loop's run().
class AdminBackend : public admin::Backend {
 public:
  using ReadStatus = std::function<admin::Status()>;
  using ReadWhy =
      std::function<std::optional<std::string>(const std::string& queue, const std::string& id)>;

  /// What is given to read runs on the loop's thread.
  AdminBackend(runtime::Loop& loop, net::Transport& transport, ReadStatus read_status,
               ReadWhy read_why);

  [[nodiscard]] std::optional<admin::Status> status() override;
  [[nodiscard]] std::string consul_trouble() override;
  [[nodiscard]] std::optional<std::string> why(const std::string& queue,
                                               const std::string& id) override;

 private:
  runtime::Loop& loop_;
  net::Transport& transport_;
  const ReadStatus read_status_;
  const ReadWhy read_why_;

  std::mutex mutex_;  // for what follows; held while Consul is asked, so that one asks for all
  Instant asked_at_ = Instant::min();
  std::string trouble_;
};

}  // namespace lictor::app
