#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "dev/model.h"
#include "httpd/server.h"

namespace lictor::dev {

/// Called with the new state after a write, on the server's worker.
using OnChange = std::function<void(const State&)>;

/// Serves `model` over HTTP as Consul's agent does on its port. `model` must outlive the server and
/// belongs to it. Errors: those of httpd::Server::start().
[[nodiscard]] Result<std::unique_ptr<httpd::Server>> serve_store(
    std::vector<httpd::Listener> listeners, Model& model, OnChange on_change = {});

}  // namespace lictor::dev
