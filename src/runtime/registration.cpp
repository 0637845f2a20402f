#include "runtime/registration.h"

#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "runtime/log.h"
#include "wire/consul.h"
#include "wire/layout.h"

namespace lictor::runtime {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

// The check's TTL covers three passes, so that two may be lost. A host that is critical for an hour
// is gone for good.
constexpr auto kPassInterval = 10s;
// The agent keeps the state of a check that it knows: critical, after a crash.
constexpr auto kFirstPass = 1s;
constexpr const char* kCheckTtl = "30s";
constexpr const char* kForgetAfter = "1h";
// The agent may have been restarted and have forgotten us.
constexpr auto kRegisterInterval = 60s;

// "http://10.0.0.5:8642" -> "10.0.0.5", 8642. The port is 0 if `url` is no TCP address.
std::pair<std::string, int> address_of(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const std::size_t colon = url.rfind(':');
  if (!url.starts_with(kScheme) || colon <= kScheme.size()) return {};
  std::string host{url.substr(kScheme.size(), colon - kScheme.size())};
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {std::move(host), to_number<int>(url.substr(colon + 1)).value_or(0)};
}

bool is_loopback(std::string_view host) { return host.starts_with("127.") || host == "::1"; }

// Whether `host` is a name, which other hosts may not resolve.
bool is_name(std::string_view host) {
  return host.find(':') == std::string_view::npos &&
         host.find_first_not_of("0123456789.") != std::string_view::npos;
}

}  // namespace

Registration::Registration(std::string node, std::string version,
                           const std::vector<std::string>& admin_urls, net::Transport& transport)
    : node_(std::move(node)), version_(std::move(version)), transport_(transport) {
  for (const std::string& url : admin_urls) {
    auto [host, port] = address_of(url);
    const bool others_reach_it = !is_loopback(host);
    if (port == 0 || (port_ != 0 && !others_reach_it)) continue;
    port_ = port;
    address_ = others_reach_it && !is_name(host) ? std::move(host) : std::string{};
    if (others_reach_it) return;
  }
}

void Registration::set_leading(std::vector<std::string> queues) {
  if (queues == leading_) return;
  leading_ = std::move(queues);
  next_at_ = register_at_ = Instant{};
}

void Registration::send_registration() {
  json tags = json::array();
  if (!leading_.empty()) tags.push_back("leader");
  for (const std::string& queue : leading_) tags.push_back("leader-" + queue);
  json service{{"ID", "lictor-" + node_},
               {"Name", "lictor"},
               {"Tags", tags},
               {"Meta", {{"version", version_}}},
               {"Check",
                {{"CheckID", "lictor-" + node_},
                 {"Name", "lictor's loop runs"},
                 {"TTL", kCheckTtl},
                 {"Status", "passing"},
                 {"DeregisterCriticalServiceAfter", kForgetAfter}}}};
  if (port_ != 0) service["Port"] = port_;
  if (!address_.empty()) service["Address"] = address_;
  http::Request request = http::put("/v1/agent/service/register",
                                    service.dump(-1, ' ', false, json::error_handler_t::replace));
  transport_.send(std::move(request), [again = again_](const http::Response& response) {
    *again = response.status == 0 || response.status >= 500;
    if (response.status == 403 && response.body.find("ACL not found") != std::string::npos) {
      log(Level::kWarn, "Consul does not know the token; correct consul.token_file",
          {{"error", wire::describe(response)}});
    } else if (response.status == 403) {
      log(Level::kWarn,
          "no right to register the service in Consul's catalog; grant service \"lictor\" write, "
          "or set consul.register to false",
          {{"error", wire::describe(response)}});
    }
  });
}

void Registration::step(Instant now) {
  if (now < next_at_) return;
  next_at_ = now + kPassInterval;
  const bool failed = again_->exchange(false);
  if (failed || now >= register_at_) {
    register_at_ = now + kRegisterInterval;
    if (!failed) next_at_ = now + kFirstPass;
    send_registration();
    return;
  }
  transport_.send(http::put("/v1/agent/check/pass/" + wire::query_value("lictor-" + node_)),
                  [](const http::Response&) {});
}

void Registration::withdraw() {
  const std::string target = "/v1/agent/service/deregister/" + wire::query_value("lictor-" + node_);
  static_cast<void>(transport_.perform(http::put(target, {}, 1s)));
}

}  // namespace lictor::runtime
