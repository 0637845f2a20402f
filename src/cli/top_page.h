#pragma once

// Draws the screen of "lictor top" from the last answers; reads nothing but the clock.
//
//   queue default   host-a leads, elected 3m ago            PAUSED
//   members  host-a  host-b (silent)
//   tasks  running 4  waiting 120  scheduled 7  dead 2
//   last minute  started 80 ...   lease left 12s
//   workers  Invoice: 1 busy, 1 idle
//   ! what is wrong, at most a third of the screen
//     and the way out
//   RUNNING          rows of the state that was chosen
//   NEWEST FAILURES  dead letters
//
// The answers may be another version's, so any field may be missing; its place then stays empty.

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
/// The page without its last line.
[[nodiscard]] Page top_page(const TopScene& scene);

/// The tasks of `tasks` or `dead`.
[[nodiscard]] nlohmann::json top_rows(const nlohmann::json& list);

}  // namespace lictor::cli
