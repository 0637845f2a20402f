#pragma once

#include <map>
#include <memory>
#include <string>

#include "lictor/executor.h"

namespace lictor::app {

/// The C++ executors that the embedding program brings, by name.
using Registry = std::map<std::string, std::shared_ptr<Executor>, std::less<>>;

}  // namespace lictor::app
