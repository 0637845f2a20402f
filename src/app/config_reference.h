#pragma once

#include <string>
#include <vector>

#include "app/config_reader.h"

namespace lictor::app {

/// The keys of one kind of object in the configuration.
struct ObjectForm {
  std::string name;  ///< as the manual's page calls it: "Queues"
  std::vector<KeyForm> keys;
};

/// Every key of the configuration, from the tables that the parser reads it by.
[[nodiscard]] std::vector<ObjectForm> configuration_forms();

}  // namespace lictor::app
