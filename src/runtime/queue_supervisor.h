#pragma once

// One queue of the daemon, whatever the number of its partitions. core::Division decides how many
// partitions there are and when their number changes. A QueueDriver serves the queue with one
// number for its whole life. So a change of the number ends one driver and makes the next, while
// the daemon and its other queues go on.
//
//   no driver --ServeQueue--> driver --EndService--> driver stops --DropService--> no driver
//      ^                                             (jobs end, locks                  |
//      |                                             are freed or kept)                |
//      +---- the next driver gets the runners and the attempt numbers of the last -----+
//
// A step steps the driver, then shows Division the driver's state (core::Division::Service) and the
// time. A reply about the number is posted to the loop, and a step follows it. Division is pure:
// it never sees the driver itself, so a unit test plays both the driver and Consul.

#include <memory>
#include <string>

#include "core/leadership/division.h"
#include "net/consul_client.h"
#include "net/transport.h"
#include "runtime/loop.h"
#include "runtime/queue_driver.h"

namespace lictor::runtime {

/// Runs a queue: carries out the decisions of core::Division. It makes the queue's driver, and
/// another one when the number of partitions changes. On the loop's thread.
class QueueSupervisor : public LoopMember {
 public:
  /// `parts.options.partitions`: the desired number. The references must outlive the supervisor.
  QueueSupervisor(QueueDriver::Parts parts, std::uint32_t weight, Loop& loop,
                  net::Transport& transport, net::ConsulClient& commits, exec::ProcessHost& host);

  /// Call it when the wall clock was set.
  void read_wall_clock() {
    if (driver_) driver_->read_wall_clock();
  }
  /// Begins an orderly stop; stopped() says when it is over.
  void request_stop();
  /// Replaces limits and executors; running jobs continue under the old ones.
  void reconfigure(const core::QueueOptions& options, std::uint32_t weight, Runners runners);

  void step(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;

  [[nodiscard]] const std::string& name() const { return parts_.options.queue; }
  [[nodiscard]] bool stopped() const { return stopping_ && (!driver_ || driver_->stopped()); }
  [[nodiscard]] Duration drain_timeout() const { return parts_.options.drain_timeout; }
  /// Null while the number of partitions is not known.
  [[nodiscard]] const QueueDriver* driver() const { return driver_.get(); }
  /// How many partitions there are; 0: not known yet.
  [[nodiscard]] std::uint32_t partitions() const { return division_.count(); }
  /// How many this host asks for, as in its entry among the members.
  [[nodiscard]] std::uint32_t desired_partitions() const { return division_.desired_partitions(); }
  /// The number of the last claim that this host has given up because it holds no lock; 0: it holds
  /// a lock, or has claimed nothing.
  [[nodiscard]] std::uint64_t given_up() const;
  /// Why the queue is not served here yet, or which write Consul refuses; empty: neither.
  [[nodiscard]] std::string waits_for() const;

 private:
  /// Sends the request that the act `ask` stands for; its reply goes to Division on the
  /// loop's thread.
  template <class Ask, class... Time>
  void ask(const char* name, const Ask& ask, Time... at);
  void carry_out(const core::DivisionActs& acts);
  void carry_out(const core::ServeQueue& act);
  /// Keeps the runners, so a worker's processes live on, and the count of attempts: the warden and
  /// the claims in Consul know an attempt by its number, so that no number may be used again.
  void drop_driver();
  void write_note(const core::DivisionNote& note) const;
  /// The driver's state for Division; all members are at their defaults without a driver.
  [[nodiscard]] core::Division::Service service() const;

  const std::uint64_t first_attempt_;
  QueueDriver::Parts parts_;  // the driver has the runners while there is one
  core::Division division_;
  Loop& loop_;
  net::Transport& transport_;
  net::ConsulClient& commits_;
  exec::ProcessHost& host_;
  std::unique_ptr<QueueDriver> driver_;
  Instant now_{};          // of the last step
  bool stopping_ = false;  // request_stop() was called; without a driver the stop is over at once
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // ends with this
};

}  // namespace lictor::runtime
