#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "admin/listener.h"
#include "admin/server.h"
#include "app/config.h"
#include "net/token_source.h"

namespace lictor::app {

/// The admin face of a daemon: first it listens, so that its addresses can be told to others, then
/// it serves.
class AdminFace {
 public:
  /// Binds what admin.listen says. Starts no thread. Errors: those of open_listeners(); kInvalid,
  /// the token file cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<AdminFace>> listen(const Config& config);

  /// By which it is asked; empty: it is switched off.
  [[nodiscard]] const std::vector<std::string>& urls() const { return urls_; }

  /// Answers from now on until the face's end. What is given must outlive it.
  [[nodiscard]] Result<void> serve(admin::Backend& backend, const admin::LogStore& logs);

 private:
  AdminFace() = default;
  [[nodiscard]] admin::Guard make_guard();

  std::vector<admin::Listener> listeners_;
  std::vector<std::string> urls_;
  std::vector<std::string> hosts_;
  net::TokenSource token_;
  std::unique_ptr<admin::Router> router_;
  std::unique_ptr<admin::Server> server_;
};

}  // namespace lictor::app
