#pragma once

// The core's effects as requests to Consul's HTTP API, and Consul's replies as events. Pure.
// Numbers in parentheses are sections of src/manual/consul.md, which has the experiments.
//
// Each effect that needs an answer has an encode() (consul_requests.cpp, fleet.cpp) and a decode()
// (consul_replies.cpp, fleet.cpp). A decode() never fails: any reply becomes an event with the
// request's id, since the core waits for it. With few exceptions:
//
//   reply                                 a write is    a read is
//   not sent                              rejected      not ok
//   no whole reply                        unknown       not ok
//   200 in Consul's form                  applied       ok
//   200 in another form (a proxy's page)  unknown       not ok
//   404 with X-Consul-Index               rejected      ok: there is no such key
//   400 401 403 404 405 413 429           rejected      not ok
//   409 with what failed                  rejected      see each decode()
//   another 4xx, a 5xx                    unknown       not ok
//
// A 5xx is unknown because the write may still be applied (6.5), unless its text names a limit or
// the refused name of a key. The causes of a 409 differ only in their texts, and a text quotes the
// key, which may hold any words. So a decode() compares only the beginning and the end of a text.

#include <chrono>
#include <string>
#include <vector>

#include "base/http.h"
#include "core/effect.h"
#include "core/event.h"
#include "wire/commit.h"
#include "wire/layout.h"
#include "wire/record.h"
#include "wire/schedule_record.h"
#include "wire/txn.h"

namespace lictor::wire {

/// The parts of a queue's requests that are in no effect.
struct Binding {
  Layout layout;
  Reserved reserved;  ///< keys that jobs must not write
  std::string queue;
  std::string node;
  std::string leader_value;  ///< JSON object, not empty: the leader, for people
  Duration session_ttl{};
  Duration lock_delay{};
  std::vector<std::string> session_checks{"serfHealth"};
  std::chrono::milliseconds request_timeout{3000};
};

[[nodiscard]] http::Request encode(const Binding&, const core::CreateSession&);
[[nodiscard]] http::Request encode(const Binding&, const core::RenewSession&);
[[nodiscard]] http::Request encode(const Binding&, const core::DestroySession&);
/// `at`: when the lock was first requested; written as "since".
[[nodiscard]] http::Request encode(const Binding&, const core::AcquireLock&, WallTime at);
/// `at`: now; written as "released".
[[nodiscard]] http::Request encode(const Binding&, const core::ReleaseLock&, WallTime at);
[[nodiscard]] http::Request encode(const Binding&, const core::ReadLeader&);
[[nodiscard]] http::Request encode(const Binding&, const core::WatchControl&);
[[nodiscard]] http::Request encode(const Binding&, const core::ListTasks&);
[[nodiscard]] http::Request encode(const Binding&, const core::FetchTasks&);
[[nodiscard]] http::Request encode(const Binding&, const core::CheckTasks&);
[[nodiscard]] http::Request encode(const Binding&, const core::ListHistory&);
[[nodiscard]] http::Request encode(const Binding&, const core::ListSchedules&);
[[nodiscard]] http::Request encode(const Binding&, const core::ReadRate&);
[[nodiscard]] http::Request encode(const Binding&, const core::Commit&);

[[nodiscard]] core::SessionCreated decode(const core::CreateSession&, const http::Response&);
[[nodiscard]] core::SessionRenewed decode(const core::RenewSession&, const http::Response&);
[[nodiscard]] core::SessionDestroyed decode(const core::DestroySession&, const http::Response&);
/// The transaction checks the core's knowledge of the keys, then locks. The answer tells the causes
/// of a failure apart, since the core goes on differently for each.
[[nodiscard]] core::LockReplied decode(const core::AcquireLock&, const http::Response&);
/// kRejected: the key was written since, or the lock is not ours; a read decides.
[[nodiscard]] core::UnlockReplied decode(const core::ReleaseLock&, const http::Response&);
[[nodiscard]] core::LeaderRead decode(const core::ReadLeader&, const http::Response&);
/// An unreadable value pauses the queue; `by` is then unreadable_control().
[[nodiscard]] core::ControlRead decode(const core::WatchControl&, const http::Response&);
/// Why the control key's value cannot be read; empty if it can.
[[nodiscard]] std::string control_fault(std::string_view value);
/// The text of `paused by` for an unreadable control key.
[[nodiscard]] std::string unreadable_control(std::string_view fault);
/// Gives names only. Folders and the folder key of the prefix are sorted out. The latter, `marker`,
/// tells a listing without tasks from one that the token may not read (7.2).
[[nodiscard]] core::TasksListed decode(const Layout&, const core::ListTasks&, http::Response);
/// A key is missing only if Consul says so: a 200 without it may hide it for want of a right (7.2).
[[nodiscard]] core::TasksFetched decode(const Layout&, const core::FetchTasks&,
                                        const http::Response&);
/// Consul answers check-index of many keys with the keys that have changed or are gone.
[[nodiscard]] core::TasksChecked decode(const core::CheckTasks&, const http::Response&);
[[nodiscard]] core::HistoryListed decode(const Layout&, const core::ListHistory&,
                                         const http::Response&);
[[nodiscard]] core::SchedulesListed decode(const Layout&, const core::ListSchedules&,
                                           http::Response, ScheduleCache&);
[[nodiscard]] core::RateRead decode(const core::ReadRate&, const http::Response&);
/// Each failure names the write at fault by its place in the commit. If the task of a write is
/// gone, all its operations fail; only the failure of the task is reported.
[[nodiscard]] core::Committed decode(const core::Commit&, const http::Response&);

/// The content of the leader key, or of a partition's lock; without the request and the index.
[[nodiscard]] core::LeaderRead leader_read(const KvEntry& entry);

/// A transaction that only reads, by a quorum: no raft entry.
[[nodiscard]] http::Request read_transaction(const Binding&, Txn txn);

/// A read of `target`, by a quorum.
[[nodiscard]] http::Request quorum_read(const Binding&, std::string target);

/// A blocking query of `target` from `index` on; from 0 it answers at once.
[[nodiscard]] http::Request blocking_read(const Binding&, std::string target, std::uint64_t index);

/// The entries in the reply to a KV read; none for a 404 with an index: there is no such key.
/// Errors: kFailed, with the unexpected reply.
[[nodiscard]] Result<std::vector<KvEntry>> read_entries(http::Response response);

/// How many operations Consul takes in a transaction, if it refused this one for their number:
/// "Transaction contains too many operations (65 > 64)". 0: it did not.
[[nodiscard]] std::size_t most_operations(const http::Response& response);

/// The outcome of a request, in words.
[[nodiscard]] std::string describe(const http::Response& response);

}  // namespace lictor::wire
