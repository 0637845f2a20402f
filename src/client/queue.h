#pragma once

// Questions to a queue and changes of it by way of Consul, without a leader's help: queue.cpp
// has the rest as methods of Client, follow.cpp and control.cpp what their names say. Each
// call blocks; the errors are those of lictor/client.h.
//
//   cancel   tasks/<id>  -- check-index, delete-cas, set done/<id> -------> done/<id>, which goes
//                                                     after 2 s if the queue keeps no history
//   retry    dead/<id>   -- check-index, cas tasks/<id> = 0, delete-cas --> tasks/<id>
//   purge    dead/<id>   -- check-index, delete-cas ----------------------> gone
//   pause    control     -- read, change, cas, again if it changed meanwhile
//
// Each change is one transaction that names the ModifyIndex that was read. If a leader claims the
// task, or another client changes it, in between, Consul refuses the whole transaction; change.h
// then reads the key and plans again. So no crash and no race leaves a task both dead and waiting,
// or neither. A leader learns of a change by its watch on the names: the job of a cancelled task is
// stopped because its key is gone.
//
// cancel() of one task writes done/<id> also where the queue keeps no history. Otherwise a producer
// in wait() could not tell a cancelled task from a finished one. CancelMarks (client.h) deletes
// that entry.
//
// A list reads a whole prefix, and the locks: only the locks show whether the session of a claim
// still leads the task's partition. Where the token may not read everything, the result names the
// prefix in `hidden`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/store.h"
#include "lictor/client.h"
#include "wire/layout.h"

namespace lictor::client {

/// Names one queue in one Consul. `store` must outlive this and its copies.
struct Queue {
  Store& store;
  std::string name;
  wire::Layout layout;

  [[nodiscard]] std::string done_key(const std::string& id) const {
    return layout.done_prefix + id;
  }
};

/// The tasks come in the order of listed_before(). Errors: those of Store::list(). A token that may
/// not read the dead letters or the history is an error only where they alone are asked for.
[[nodiscard]] Result<TaskList> list_tasks(const Queue& queue, const TaskFilter& filter);
/// Returns the task of this id, then its dead letters, the oldest first, then its history entry.
/// Errors: kNotFound, none of them exists; those of Store::get().
[[nodiscard]] Result<std::vector<TaskInfo>> show_task(const Queue& queue, const std::string& id);

/// See Client::wait().
[[nodiscard]] Result<Ending> follow(const Queue& queue, const std::string& id,
                                    const WaitOptions& options);

/// A queue without a control key is not paused. Errors: those of Store::get().
[[nodiscard]] Result<PauseState> pause_state(const Queue& queue);

struct Letters {
  std::vector<TaskInfo> of_task;  ///< the dead letters of the task `id`, the oldest first
  std::optional<TaskInfo> named;  ///< dead/<id>, if it is of another task
};
/// Errors: those of Store::get() and Store::names(); kPermissionDenied also where dead/<id> does
/// not exist.
[[nodiscard]] Result<Letters> dead_letters_of(const Queue& queue, const std::string& id);

/// The producer's record in a dead letter, to be tried again.
/// Errors: kInvalid, the letter holds no task, or one whose expireAt has passed.
[[nodiscard]] Result<std::string> retried_record(std::string_view letter, WallTime now,
                                                 bool drop_expiry);

}  // namespace lictor::client
