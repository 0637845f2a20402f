#include "app/admin_face.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "base/host_name.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

constexpr auto kTokenFileReadInterval = std::chrono::seconds{1};

}  // namespace

Result<std::unique_ptr<AdminFace>> AdminFace::listen(const Config& config) {
  std::unique_ptr<AdminFace> face{new AdminFace};
  const std::string host = host_name();
  if (auto opened = face->token_.open({}, config.admin.token_file, kTokenFileReadInterval);
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
  face->listeners_ = std::move(*listeners);
  face->hosts_ = {host, host.substr(0, host.find('.')), config.node};
  for (const httpd::Listener& listener : face->listeners_) {
    face->urls_.push_back(listener.url);
    if (!listener.host.empty()) face->hosts_.push_back(listener.host);
  }
  return face;
}

std::string AdminFace::token() { return token_.current(); }

Result<void> AdminFace::serve(const Sources& from) {
  if (listeners_.empty()) return {};
  router_ = std::make_unique<admin::Router>(admin::Guard{{hosts_, [this] { return token(); }}});
  admin::add_status_routes(*router_, from.backend);
  admin::add_log_routes(*router_, from.backend, from.logs);
  admin::add_metrics_route(*router_, from.backend, from.observers.metrics);
  admin::add_event_route(*router_, from.observers.events);
  admin::add_queue_routes(*router_, from.backend, from.queues, from.observers.activity);
  admin::add_task_routes(*router_, from.queues);
  admin::add_schedule_routes(*router_, from.queues);
  admin::add_change_routes(*router_, from.queues);
  admin::add_page_routes(*router_);
  httpd::Options options;
  options.refuse = [router = router_.get()](const auto& request) {
    return router->refuse(request);
  };
  options.handle = [router = router_.get()](const auto& exchange) { router->handle(exchange); };
  options.max_connections = 256;     // 200 of them may follow the events
  options.max_body_bytes = 600'000;  // a task may be as large as Consul's values, 512 KiB
  // Answers go out of date at once, and no page may guess their type.
  options.headers = {
      {"Cache-Control", "no-store"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Frame-Options", "DENY"},
      // What a task holds is shown as text; were it ever taken for markup, it could do nothing.
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
       "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"}};
  auto server = httpd::Server::start(std::move(listeners_), std::move(options));
  if (!server) return tl::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  for (const std::string& url : urls_) {
    runtime::log(runtime::Level::kInfo, "the admin face listens", {{"address", url}});
  }
  return {};
}

}  // namespace lictor::app
