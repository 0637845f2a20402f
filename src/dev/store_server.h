#pragma once

#include "dev/model.h"

namespace lictor::dev {

/// Serves `model` over HTTP on the listening socket `listener`, a thread for each connection, as
/// Consul's agent does on its port. Does not return: it is the whole of a process, which ends by a
/// signal and keeps nothing.
[[noreturn]] void serve_store(int listener, Model& model);

}  // namespace lictor::dev
