#pragma once

#include <functional>

#include "dev/model.h"

namespace lictor::dev {

/// Told what there is after a write.
using OnChange = std::function<void(const State&)>;

/// Serves `model` over HTTP on the listening socket `listener`, a thread for each connection, as
/// Consul's agent does on its port. Does not return: it is the whole of a process, which ends by a
/// signal and keeps nothing. `on_change` is called after each write, by one thread at a time, while
/// all other requests wait.
[[noreturn]] void serve_store(int listener, Model& model, OnChange on_change = {});

}  // namespace lictor::dev
