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
  if (!listeners) return tl::unexpected(std::move(listeners.error()));
  face->listeners_ = std::move(*listeners);
  face->hosts_ = {host, host.substr(0, host.find('.')), config.node};
  for (const httpd::Listener& listener : face->listeners_) {
    face->urls_.push_back(listener.url);
    if (!listener.host.empty()) face->hosts_.push_back(listener.host);
  }
  return face;
}

Result<void> AdminFace::serve(admin::Backend& backend, const admin::LogStore& logs,
                              const admin::Metrics& metrics, admin::Events& events) {
  if (listeners_.empty()) return {};
  router_ =
      std::make_unique<admin::Router>(admin::Guard{{hosts_, [this] { return token_.current(); }}});
  admin::add_status_routes(*router_, backend);
  admin::add_log_routes(*router_, logs);
  admin::add_metrics_route(*router_, backend, metrics);
  admin::add_event_route(*router_, events);
  httpd::Options options;
  options.refuse = [router = router_.get()](const auto& request) {
    return router->refuse(request);
  };
  options.handle = [router = router_.get()](const auto& exchange) { router->handle(exchange); };
  options.max_connections = 256;  // 200 of them may follow the events
  // Answers go out of date at once, and no page may guess their type.
  options.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  auto server = httpd::Server::start(std::move(listeners_), std::move(options));
  if (!server) return tl::unexpected(std::move(server.error()));
  server_ = std::move(*server);
  for (const std::string& url : urls_) {
    runtime::log(runtime::Level::kInfo, "the admin face listens", {{"address", url}});
  }
  return {};
}

}  // namespace lictor::app
