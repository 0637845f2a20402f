#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/leadership/division.h"
#include "net/consul_client.h"
#include "net/transport.h"
#include "runtime/loop.h"
#include "runtime/queue_driver.h"

namespace lictor::runtime {

/// Runs a queue: carries out what core::Division decides. So it makes the queue's driver, and makes
/// it again when the number of partitions changes. On the loop's thread.
class QueueSupervisor : public LoopMember {
 public:
  /// `parts.options.partitions`: how many there should be. The references must outlive it.
  QueueSupervisor(QueueDriver::Parts parts, std::uint32_t weight, Loop& loop,
                  net::Transport& transport, net::ConsulClient& commits, exec::ProcessHost& host);
  ~QueueSupervisor() override;

  /// Call it when the wall clock was set.
  void read_wall_clock();
  /// Begins an orderly stop; stopped() says when it is over.
  void request_stop();
  /// Replaces limits and executors; running jobs continue under the old ones.
  void reconfigure(const core::QueueOptions& options, std::uint32_t weight, Runners runners);

  void step(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;

  [[nodiscard]] const std::string& name() const { return parts_.options.queue; }
  [[nodiscard]] bool stopped() const;
  [[nodiscard]] Duration drain_timeout() const { return parts_.options.drain_timeout; }
  /// Null while the number of partitions is not known.
  [[nodiscard]] const QueueDriver* driver() const { return driver_.get(); }
  /// How many partitions there are; 0: not known yet.
  [[nodiscard]] std::uint32_t partitions() const { return division_.count(); }
  /// How many this host asks for, as its entry among the members says.
  [[nodiscard]] std::uint32_t desired_partitions() const { return division_.desired_partitions(); }
  /// Why the queue is not served here yet; empty: it is.
  [[nodiscard]] std::string waits_for() const;

 private:
  // Shared with callbacks that may come after the supervisor's end.
  struct Inbox {
    std::mutex mutex;
    std::vector<std::function<void(Instant, core::DivisionActs&)>> replies;
    Loop* loop = nullptr;
  };
  template <class Ask, class... Time>
  void ask(const char* name, const Ask& ask, Time... at);
  void carry_out(const core::DivisionActs& acts);
  void carry_out(const core::ServeQueue& act);
  void drop_driver();
  void write_note(const core::DivisionNote& note) const;
  [[nodiscard]] core::Division::Service service() const;

  QueueDriver::Parts parts_;  // runners are the driver's while there is one
  core::Division division_;
  Loop& loop_;
  net::Transport& transport_;
  net::ConsulClient& commits_;
  exec::ProcessHost& host_;
  const std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<QueueDriver> driver_;
  bool stopping_ = false;
};

}  // namespace lictor::runtime
