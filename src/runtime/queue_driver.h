#pragma once

// The shell around the core of one queue. The core decides: it takes events and gives effects, and
// knows no thread, clock or socket. The driver carries the effects out and turns every answer into
// the next event.
//
//   network thread:  replies, decoded there ----+
//   other threads:   exits of jobs -------------+--> Inbox --wake()--+
//   loop's thread:   requests of the owner -----+                    |
//                    replies of transactions ------> Inbox::at_hand -+
//                                                                    v
//   step():  events --> note_lock() --> core --> effects about jobs --> all other effects
//
// The order within a step prevents two failures. The warden learns of a lock before a job can start
// under that lock, so the warden can release the locks of a daemon that dies at any instant. Jobs
// start before requests go out, since each request wakes a thread that competes for the processor.
//
// Replies are decoded on the network thread: a long listing must not hold up the loop, which proves
// the leases. Transactions go over a client on the loop's own thread (app/transaction_channel.h).
// Their replies are short, and a change of thread for each would cost more than decoding them.
//
// A driver may end while requests are under way, when the number of partitions changes. So its
// callbacks share the ownership of the inbox and of the data that they decode with, and never refer
// to the driver.

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/queue.h"
#include "exec/process_host.h"
#include "exec/runner.h"
#include "net/consul_client.h"
#include "net/transport.h"
#include "runtime/fact_log.h"
#include "runtime/lock_watch.h"
#include "runtime/loop.h"
#include "runtime/observer.h"
#include "runtime/session_file.h"
#include "wire/consul.h"

namespace lictor::runtime {

using Runners = std::map<std::string, std::unique_ptr<exec::Runner>, std::less<>>;

/// The end of a job for the core, with its result and its KV writes checked: a fault of the writes
/// fails the attempt; a result that cannot be kept is left out. Thread-safe.
[[nodiscard]] core::JobExited to_core(const wire::Reserved& reserved, const std::string& task_key,
                                      exec::Exit exit);

/// Connects one queue's core to Consul and to the executors: carries out its effects, and feeds it
/// events. On the loop's thread, except the inbox, which takes replies and exits from any thread.
class QueueDriver : public LoopMember {
 public:
  struct Parts {
    core::QueueOptions options;
    wire::Binding binding;
    Runners runners;                 // by taskType; "*" takes all others
    exec::LeaseSlot lease_slot = 0;  // of partition 0; the other partitions' slots follow
    std::string state_dir;
    std::vector<Observer*> observers;  // must outlive the driver
  };

  /// The references must outlive the driver. Transactions go over `commits`, on the loop's thread;
  /// all other requests go over `transport`.
  QueueDriver(Parts parts, Loop& loop, net::Transport& transport, net::ConsulClient& commits,
              exec::ProcessHost& host);
  ~QueueDriver() override;

  /// Begins to campaign.
  void start();
  /// Call it when the wall clock was set.
  void read_wall_clock();
  /// Begins an orderly stop; stopped() says when it is over. `keeps_locks`: pauses once no job
  /// runs, see locks_kept_by().
  void request_stop(bool keeps_locks = false) { inbox_->put(core::StopRequested{keeps_locks}); }
  /// The session that still holds locks when all jobs have ended; std::nullopt before that.
  [[nodiscard]] const std::optional<std::string>& locks_kept_by() const { return kept_by_; }
  /// The queue has another number of partitions than this driver was made for.
  [[nodiscard]] bool count_changed() const { return core_.count_changed(); }
  /// Sets the members of the queue, this host included.
  void members_seen(std::vector<core::BalancerMember> members) {
    inbox_->put(core::MembersSeen{std::move(members)});
  }
  [[nodiscard]] bool holds_all() const;
  [[nodiscard]] Instant locks_free_from() const { return core_.locks_free_from(); }
  /// Jobs that have not ended, of a stopped queue too.
  [[nodiscard]] bool any_job() const { return !running_.empty(); }
  /// For the next driver; call it after stopped(), when no job runs.
  [[nodiscard]] std::uint64_t next_attempt() const { return core_.next_attempt(); }
  [[nodiscard]] Runners take_runners();

  /// Replaces limits and executors; running jobs continue under the old ones.
  void reconfigure(const core::QueueOptions& options, Runners runners);
  /// Why the task `id` is not running, as JSON (wire::reasons_json). std::nullopt if this member
  /// doesn't hold the lock.
  [[nodiscard]] std::optional<std::string> why(Instant now, const std::string& id) const;

  void step(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;

  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] bool leading(Instant now) const { return core_.leading(now); }
  [[nodiscard]] bool drained() const { return core_.drained(); }
  [[nodiscard]] std::size_t running() const { return core_.running(); }
  [[nodiscard]] const core::Queue& core() const { return core_; }

 private:
  // Shared with callbacks that may come after the driver's end.
  struct Inbox {
    std::mutex mutex;
    std::vector<core::Event> events;
    std::vector<core::Event> at_hand;  // of this turn; needs no mutex, as turns never overlap
    Loop* loop = nullptr;
    /// From any thread. Only the first event of a burst wakes the loop. If this thread is `lent`,
    /// it makes the turn itself.
    void put(core::Event event, bool lent = false);
  };

  /// `encoded_at`: the time in the request's value, if it has one.
  template <class Effect, class... Time>
  void send(const Effect& effect, Time... encoded_at);
  /// The runner of the type, or else the one of "*". Null: no executor takes the type.
  [[nodiscard]] exec::Runner* runner_of(const std::string& type) const;
  void carry_out(const core::AcquireLock& effect);
  void carry_out(const core::ReleaseLock& effect);
  void carry_out(const core::ListSchedules& effect);
  void carry_out(core::Commit& commit);
  void carry_out(const core::CancelRequest& effect);
  void carry_out(const core::StartJob& effect);
  void carry_out(const core::StopJob& effect);
  void carry_out(const core::ExtendLease& effect);
  void carry_out(const core::EndLease& effect);
  void carry_out(const core::RememberSession& effect) { session_file_.save(effect.session); }
  void carry_out(const core::RememberHolder& effect);
  void carry_out(const core::Fact& effect);
  void carry_out(const core::ReadLeader& effect);
  void carry_out(const core::Drained& effect) { kept_by_ = effect.session; }
  void carry_out(const core::Stopped&) { stopped_ = true; }
  // With one partition each ReadLeader is a request of its own. With several, LockWatch serves them
  // together, so the number of requests does not grow with the partitions.
  void watch_locks();
  void note_lock(const core::Event& event);
  void keep_lock(std::uint32_t partition, const std::string& session, std::uint64_t index);
  template <class Effect>
  void carry_out(const Effect& effect) {
    send(effect);
  }
  /// `name`: of the request, in the metrics. `decode` runs on the network thread, perhaps after the
  /// driver's end, so it must own its data.
  void dispatch(const char* name, http::Request request, RequestId id,
                std::function<core::Event(http::Response)> decode);
  void deliver(Instant now);
  /// Long lists leave free memory in the heap, which malloc does not return by itself.
  void release_memory(Instant now);
  void drop_old_runners();

  core::QueueOptions options_;
  const std::shared_ptr<const wire::Binding> binding_;
  const std::shared_ptr<wire::ScheduleCache> schedules_ = std::make_shared<wire::ScheduleCache>();
  Runners runners_;
  std::vector<Runners> old_runners_;  // from before a reload; some of their jobs still run
  const exec::LeaseSlot lease_slot_;
  SessionFile session_file_;
  std::vector<std::uint64_t> held_;  // by partition; see core::RememberHolder
  Loop& loop_;
  net::Transport& transport_;
  net::ConsulClient& commits_;
  exec::ProcessHost& host_;

  // Shared with replies that may come after the driver's end.
  std::shared_ptr<const std::vector<Observer*>> observers_;
  core::Queue core_;
  std::shared_ptr<Inbox> inbox_;
  std::vector<core::Event> events_;
  core::Effects effects_;
  Instant release_at_ = Instant::max();  // when to return free memory
  std::uint64_t gone_at_release_ = 0;    // how many tasks had gone then
  /// One partition's lock: the last request for it, and the session that the warden knows. While
  /// the outcome of a request is unknown, its repetition has the same time in its value.
  struct KeptLock {
    core::AcquireLock asked;  // the last request
    WallTime since{};         // in its value
    bool answered = true;
    std::string kept_session;  // the one that the warden knows
  };
  std::vector<KeptLock> locks_;  // by partition
  // With several partitions:
  std::array<RequestId, 2> lock_queries_{};  // of all locks now, and of changes
  const std::shared_ptr<LockWatch> lock_watch_ = std::make_shared<LockWatch>();
  // From request ids of the core to those of the transport and the ConsulClient.
  std::unordered_map<RequestId, RequestId> in_flight_;
  std::unordered_map<RequestId, RequestId> committing_;
  std::unordered_map<AttemptId, exec::Runner*> running_;  // each in runners_ or old_runners_
  TroubleLog troubles_;
  std::optional<std::string> kept_by_;
  bool stopped_ = false;
};

}  // namespace lictor::runtime
