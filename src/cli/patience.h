#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "net/transport.h"

namespace lictor::cli {

/// `transport`, and one line on standard error when Consul, at `addresses`, lets a request wait for
/// long.
[[nodiscard]] std::unique_ptr<net::Transport> patient(std::unique_ptr<net::Transport> transport,
                                                      const std::vector<std::string>& addresses,
                                                      const Console& console);

}  // namespace lictor::cli
