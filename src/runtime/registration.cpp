#include "runtime/registration.h"

#include <utility>

#include <nlohmann/json.hpp>

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
constexpr const char* kCheckTtl = "30s";
constexpr const char* kForgetAfter = "1h";
// The agent may have been restarted and have forgotten us.
constexpr auto kRegisterInterval = 60s;

}  // namespace

Registration::Registration(std::string node, std::string version, net::Transport& transport)
    : node_(std::move(node)), version_(std::move(version)), transport_(transport) {}

void Registration::set_leading(std::vector<std::string> queues) {
  if (queues == leading_) return;
  leading_ = std::move(queues);
  next_at_ = register_at_ = Instant{};
}

void Registration::send_registration() {
  json tags = json::array();
  if (!leading_.empty()) tags.push_back("leader");
  for (const std::string& queue : leading_) tags.push_back("leader-" + queue);
  const json service{{"ID", "lictor-" + node_},
                     {"Name", "lictor"},
                     {"Tags", tags},
                     {"Meta", {{"version", version_}}},
                     {"Check",
                      {{"CheckID", "lictor-" + node_},
                       {"Name", "lictor's loop runs"},
                       {"TTL", kCheckTtl},
                       {"Status", "passing"},
                       {"DeregisterCriticalServiceAfter", kForgetAfter}}}};
  http::Request request = http::put("/v1/agent/service/register",
                                    service.dump(-1, ' ', false, json::error_handler_t::replace));
  transport_.send(std::move(request), [](const http::Response& response) {
    if (response.status == 403) {
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
  if (now >= register_at_) {
    register_at_ = now + kRegisterInterval;
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
