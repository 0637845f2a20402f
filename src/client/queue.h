#pragma once

// Questions to a queue and changes of it by way of Consul, without a leader's help: queue.cpp
// has the rest as methods of Client, follow.cpp and dead_letters.cpp what their names say. Each
// call blocks; the errors are those of lictor/client.h.
//
//   cancel   tasks/<id>  -- check-index, delete-cas, set done/<id> ------------> done/<id>, which goes
//                                                     after 2 s if the queue keeps no history
//   retry    dead/<id>   -- check-index, cas tasks/<id> = 0, delete-cas -------> tasks/<id>
//   purge    dead/<id>   -- check-index, delete-cas ---------------------------> gone
//   pause    control     -- read, change, cas, again if it changed meanwhile

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/store.h"
#include "lictor/client.h"
#include "wire/layout.h"

namespace lictor::client {

struct Queue {
  Store& store;
  std::string name;
  wire::Layout layout;

  [[nodiscard]] std::string done_key(const std::string& id) const {
    return layout.done_prefix + id;
  }
};

[[nodiscard]] Result<TaskList> list_tasks(const Queue& queue, const TaskFilter& filter);
[[nodiscard]] Result<std::vector<TaskInfo>> show_task(const Queue& queue, const std::string& id);

/// See Client::wait().
[[nodiscard]] Result<Ending> follow(const Queue& queue, const std::string& id,
                                    const WaitOptions& options);

[[nodiscard]] Result<PauseState> pause_state(const Queue& queue);

struct Letters {
  std::vector<TaskInfo> of_task;  ///< the dead letters of the task `id`, the oldest first
  std::optional<TaskInfo> named;  ///< dead/<id>, if it is of another task
};
[[nodiscard]] Result<Letters> dead_letters_of(const Queue& queue, const std::string& id);

/// The producer's record in a dead letter, to be tried again.
/// Errors: kInvalid, the letter holds no task, or one whose expireAt has passed.
[[nodiscard]] Result<std::string> retried_record(std::string_view letter, WallTime now,
                                                 bool drop_expiry);

}  // namespace lictor::client
