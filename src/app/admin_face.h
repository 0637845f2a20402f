#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/routes.h"
#include "app/config.h"
#include "httpd/server.h"
#include "net/token_source.h"

namespace lictor::app {

/// The admin face of a daemon. It listens first, since the daemon publishes its addresses, and
/// serves later.
class AdminFace {
 public:
  /// Binds admin.listen. Starts no thread. Errors: those of open_listeners(); kInvalid, the token
  /// file cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<AdminFace>> listen(const Config& config);

  /// Empty: the face is switched off.
  [[nodiscard]] const std::vector<std::string>& urls() const { return urls_; }

  /// Answers until the face's end. The arguments must outlive it.
  [[nodiscard]] Result<void> serve(admin::Backend& backend, const admin::LogStore& logs,
                                   const admin::Metrics& metrics, admin::Events& events);

 private:
  AdminFace() = default;

  std::vector<httpd::Listener> listeners_;
  std::vector<std::string> urls_;
  std::vector<std::string> hosts_;
  net::TokenSource token_;
  std::unique_ptr<admin::Router> router_;
  std::unique_ptr<httpd::Server> server_;
};

}  // namespace lictor::app
