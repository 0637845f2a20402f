#pragma once

// The admin API of a daemon in two steps, since the daemon needs the addresses before it joins a
// queue, and the handlers need the queues:
//
//   listen()  binds the sockets; clients that connect now wait in the kernel's backlog
//   serve()   opens a transport, builds the routes and starts the HTTP server
//
//   httpd's thread --> its workers --> Router --> a route --+--> AdminBackend --> the loop's thread
//                                                           +--> Client --> transport_ --> Consul
//                                                           +--> LogStore --> files
//                                                           +--> Metrics, Events, Activity
//
// The members below stand in the order of their use, each after what it refers to. So the HTTP
// server, the last one, ends first, and no handler outlives what it reads. The whole object must
// end before the Daemon that the two read functions refer to.

#include <memory>
#include <string>
#include <vector>

#include "admin/activity.h"
#include "admin/events.h"
#include "admin/metrics.h"
#include "admin/routes.h"
#include "app/admin_backend.h"
#include "app/config.h"
#include "client/client.h"
#include "exec/output_log.h"
#include "httpd/server.h"
#include "net/token_source.h"
#include "net/transport.h"
#include "runtime/refusals.h"

namespace lictor::app {

/// Logs that another token is in force, or why not (TokenSource::OnChange). Thread safe.
void log_token_change(const std::string& file, const std::string& trouble);

/// The observers of the queues, for the admin API and for the service manager.
struct Observers {
  admin::Metrics metrics;
  admin::Events events;
  admin::Activity activity;
  runtime::Refusals refusals;

  /// `with_admin`: also the observers that only the admin API shows.
  [[nodiscard]] std::vector<runtime::Observer*> all(bool with_admin) {
    if (!with_admin) return {&refusals};
    return {&metrics, &events, &activity, &refusals};
  }
};

/// The admin API of a daemon. It listens first, since the daemon publishes its addresses, and
/// serves later. It has a transport of its own, so that a long listing does not delay a claim.
class AdminServer {
 public:
  /// Binds admin.listen. Starts no thread except the token file's. `config` must outlive it.
  /// Errors: those of open_listeners(); kInvalid, the token file cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> listen(const Config& config);

  /// Empty: the admin API is switched off.
  [[nodiscard]] const std::vector<std::string>& urls() const { return urls_; }

  /// The sources of the admin API's answers. The references must outlive it.
  struct Sources {
    runtime::Loop& loop;
    AdminBackend::ReadStatus read_status;
    AdminBackend::ReadWhy read_why;
    std::shared_ptr<exec::ActiveLogs> active_logs;
    Observers& observers;
    std::shared_ptr<net::RateBackoff> backoff;  ///< of the daemon's clients of Consul
  };
  /// Answers until the admin API's end. Does nothing if it is switched off. Errors: those of
  /// net::Transport::open() and httpd::Server::start().
  [[nodiscard]] Result<void> serve(const Sources& from);

 private:
  explicit AdminServer(const Config& config) : config_(config) {}

  const Config& config_;
  std::vector<httpd::Listener> listeners_;
  std::vector<std::string> urls_;
  std::vector<std::string> hosts_;
  net::TokenSource token_;
  std::unique_ptr<net::Transport> transport_;
  std::vector<std::unique_ptr<Client>> clients_;
  admin::StoredQueues queues_;
  std::unique_ptr<AdminBackend> backend_;
  std::unique_ptr<admin::LogStore> logs_;
  std::unique_ptr<admin::Router> router_;
  std::unique_ptr<httpd::Server> server_;
};

}  // namespace lictor::app
