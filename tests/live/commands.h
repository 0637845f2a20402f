#pragma once

// Commands of lictor, as a user types them.

#include <string>
#include <vector>

#include "process.h"
#include "world.h"

namespace lictor::live {

/// A command line on the queue of `world`, whatever is configured on this host.
[[nodiscard]] std::vector<std::string> command_line(const World& world,
                                                    const std::vector<std::string>& arguments,
                                                    const std::string& consul);
/// `lictor ...` to its end; reaches Consul as the world's daemons do.
Output lictor(const World& world, const std::vector<std::string>& arguments);
Output lictor(const World& world, const std::vector<std::string>& arguments,
              const std::string& consul);
/// Checks that `text` is in the output, which is shown if it is not.
bool says(const Output& output, const std::string& text);

}  // namespace lictor::live
