#include "app/admin_server.h"

#include <utility>

#include "app/executors.h"
#include "base/host_name.h"
#include "base/try.h"
#include "net/connections.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

constexpr auto kTokenFileReadInterval = std::chrono::seconds{1};

}  // namespace

void log_token_change(const std::string& file, const std::string& trouble) {
  if (!trouble.empty()) {
    return runtime::log(runtime::Level::kWarn,
                        "a token file cannot be used; the last token stays in force",
                        {{"file", file}, {"error", trouble}});
  }
  runtime::log(runtime::Level::kInfo, "the token was read again", {{"file", file}});
}

Result<std::unique_ptr<AdminServer>> AdminServer::listen(const Config& config) {
  std::unique_ptr<AdminServer> server{new AdminServer{config}};
  const std::string host = host_name();
  if (auto opened = server->token_.open({}, config.admin.token_file, kTokenFileReadInterval,
                                        log_token_change);
      !opened) {
    return fail(opened.error().code, "admin.token_file: " + opened.error().message);
  }
  httpd::ListenOptions options;
  options.addresses = config.admin.listen;
  options.any_port_will_do = config.admin.listen_is_default;
  options.host_name = host;
  options.on_warning = [](const std::string& warning) {
    runtime::log(runtime::Level::kWarn, warning);
  };
  auto listeners = httpd::open_listeners(options);
  if (!listeners) {
    return fail(listeners.error().code,
                "admin.listen: " + listeners.error().message +
                    "; choose another address, port 0 for any that is free, or [] for none");
  }
  server->listeners_ = std::move(*listeners);
  // The names that a request's Host may have; others are a sign of DNS rebinding (admin/router.h).
  server->hosts_ = {host, host.substr(0, host.find('.')), config.node};
  for (const httpd::Listener& listener : server->listeners_) {
    server->urls_.push_back(listener.url);
    if (!listener.host.empty()) server->hosts_.push_back(listener.host);
  }
  return server;
}

Result<void> AdminServer::serve(const Sources& from) {
  if (listeners_.empty()) return {};
  // All requests are short and none is urgent: people and programs that look may wait.
  net::Tuning tuning;
  tuning.max_short_requests = net::kAdminConnections;
  tuning.max_urgent_requests = tuning.max_polls = 0;
  tuning.backoff = from.backoff;
  LICTOR_TRY(auto transport, net::Transport::open(config_.consul.options, std::move(tuning)));
  transport_ = std::move(transport);
  for (const QueueConfig& queue : config_.queues) {
    auto impl = std::make_unique<Client::Impl>(*transport_, queue.options.queue, queue.layout);
    client::Queue stored = impl->queue;
    clients_.push_back(std::make_unique<Client>(std::move(impl)));
    queues_.push_back({*clients_.back(), std::move(stored)});
  }
  const auto token = [this] { return token_.current(); };
  backend_ = std::make_unique<AdminBackend>(from.loop, *transport_, config_.node, queues_,
                                            from.read_status, from.read_why, token);
  logs_ = std::make_unique<admin::LogStore>(
      admin::LogStore{log_directory(config_), from.active_logs, config_.node});
  router_ = std::make_unique<admin::Router>(admin::Guard{{hosts_, config_.admin.names, token}});
  admin::add_status_routes(*router_, *backend_);
  admin::add_log_routes(*router_, *backend_, *logs_);
  admin::add_metrics_route(*router_, *backend_, from.observers.metrics);
  admin::add_event_route(*router_, from.observers.events, queues_);
  admin::add_queue_routes(*router_, *backend_, queues_, from.observers.activity);
  admin::add_task_routes(*router_, queues_);
  admin::add_change_routes(*router_, queues_);
  admin::add_page_routes(*router_);
  httpd::Options options;
  options.refuse = [router = router_.get()](const auto& request) {
    return router->refuse(request);
  };
  options.is_quick = [router = router_.get()](const auto& request) {
    return router->is_quick(request);
  };
  options.handle = [router = router_.get()](const auto& exchange) { router->handle(exchange); };
  options.max_connections = 256;     // 200 of them may follow the events
  options.max_body_bytes = 600'000;  // a task may be as large as Consul's values, 512 KiB
  // Answers become outdated at once, and no page may guess their type.
  options.headers = {
      {"Cache-Control", "no-store"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      // A task's content is shown as text; even if it were taken for markup, it could do nothing.
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
       "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"}};
  LICTOR_TRY(auto server, httpd::Server::start(std::move(listeners_), std::move(options)));
  server_ = std::move(server);
  for (const std::string& url : urls_) {
    runtime::log(runtime::Level::kInfo, "the admin API listens", {{"address", url}});
  }
  return {};
}

}  // namespace lictor::app
