#include <stdexcept>

#include <nlohmann/json.hpp>

#include "bench.h"

namespace lictor::bench {

double drain(const live::ConsulAgent& consul, std::size_t count, const std::string& queue) {
  live::Kv kv{consul.address()};
  kv.put("lictor/default/control", std::string{R"({"paused": {"by": "bench"}})"});
  load(kv, "lictor/default/tasks/", count, "Noop");
  const Worker worker{consul, queue};

  const std::int64_t begin = live::monotonic_ns();
  kv.put("lictor/default/control", std::string{"{}"});
  // Cheap for Consul while many are left: the last task in order is the last to go.
  const bool done = live::eventually([&] {
    const auto names = kv.request("GET", "/v1/kv/lictor/default/tasks/?keys&separator=/");
    return names.status == 200 && names.body.size() < 40;
  });
  if (!done) throw std::runtime_error{"the queue was not drained"};
  return live::seconds_between(begin, live::monotonic_ns());
}

}  // namespace lictor::bench
