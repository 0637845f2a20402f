#pragma once

// The screen of "lictor top".

#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/screen.h"

namespace lictor::cli {

/// The lists of tasks that can be chosen, by their states.
inline constexpr std::array<const char*, 3> kTopStates{"running", "waiting", "scheduled"};

/// The last answers about the queue, and why they may be old.
struct TopView {
  nlohmann::json queue = nlohmann::json::object();  ///< of /v1/queues
  std::string state = kTopStates.front();           ///< of `tasks`
  nlohmann::json tasks = nlohmann::json::object();  ///< of /v1/tasks
  nlohmann::json dead = nlohmann::json::object();   ///< of /v1/dead
  std::string trouble;
};

struct TopScene {
  const Client& client;
  const TopView& view;
  const std::string& chosen;  ///< the key of a task
  Screen::Size size;
};
/// All but the last line.
[[nodiscard]] Page top_page(const TopScene& scene);

/// The tasks of `tasks` or `dead`.
[[nodiscard]] nlohmann::json top_rows(const nlohmann::json& list);

}  // namespace lictor::cli
