#pragma once

#include <memory>
#include <vector>

#include "admin/routes.h"
#include "app/config.h"
#include "client/client.h"
#include "net/transport.h"

namespace lictor::app {

/// The queues as clients see them, for the admin face. The transport is not the daemon's, so that a
/// long listing does not delay a claim. Thread safe.
class ClientSide {
 public:
  /// Errors: those of net::Transport::open().
  [[nodiscard]] static Result<std::unique_ptr<ClientSide>> open(const Config& config);
  [[nodiscard]] net::Transport& transport() { return *transport_; }
  [[nodiscard]] const admin::StoredQueues& queues() const { return queues_; }

 private:
  ClientSide(const Config& config, std::unique_ptr<net::Transport> transport);

  std::unique_ptr<net::Transport> transport_;
  std::vector<std::unique_ptr<Client>> clients_;
  admin::StoredQueues queues_;
};

}  // namespace lictor::app
