#include "app/config_reference.h"

#include <optional>
#include <utility>

#include "app/config_parts.h"

namespace lictor::app {

std::vector<ObjectForm> configuration_forms() {
  Config config;
  QueueConfig queue;
  core::TypePolicy policy;
  ExecutorParts parts;
  std::optional<Place> place;
  QueueMembers members;
  std::vector<KeyForm> executor = forms_of(executor_settings(parts, policy, Mode::kClient));
  const std::vector<KeyForm> inherited = forms_of(policy_settings(policy));
  for (std::size_t i = 0; i < inherited.size(); ++i) executor[i].otherwise = "the queue's";
  return {{"Top level", forms_of(top_settings(config, place))},
          {"Queues", forms_of(queue_settings(queue, policy, members))},
          {"Executors", std::move(executor)}};
}

}  // namespace lictor::app
