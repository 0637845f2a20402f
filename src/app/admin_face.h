#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/activity.h"
#include "admin/events.h"
#include "admin/metrics.h"
#include "admin/routes.h"
#include "app/config.h"
#include "httpd/server.h"
#include "net/token_source.h"

namespace lictor::app {

/// What watches the queues for the face.
struct Observers {
  admin::Metrics metrics;
  admin::Events events;
  admin::Activity activity;

  [[nodiscard]] std::vector<runtime::Observer*> all() { return {&metrics, &events, &activity}; }
};

/// The admin face of a daemon. It listens first, since the daemon publishes its addresses, and
/// serves later.
class AdminFace {
 public:
  /// Binds admin.listen. Starts no thread but that of the token file. Errors: those of open_listeners(); kInvalid, the token
  /// file cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<AdminFace>> listen(const Config& config);

  /// Empty: the face is switched off.
  [[nodiscard]] const std::vector<std::string>& urls() const { return urls_; }

  /// What the face answers from. All must outlive it.
  struct Sources {
    admin::Backend& backend;
    const admin::StoredQueues& queues;
    const admin::LogStore& logs;
    Observers& observers;
  };
  /// Answers until the face's end.
  [[nodiscard]] Result<void> serve(const Sources& sources);

  /// The token of the admin faces; empty: none is set. Thread safe.
  [[nodiscard]] std::string token();

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
