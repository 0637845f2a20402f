#pragma once

// How many partitions a queue of this daemon has, and who shares them.
//
// The configurations of the hosts say how many there should be, and the key `partitions` how many
// there are; without it there is one. The number changes when all members want the same:
//
//   from one:      all stop, and the first that sees that nobody leads writes the number
//   from several:  see core/leadership/count_change.h
//
// A host asks for another number only when its token may write that. Otherwise all would give up
// what they lead for a change that Consul refuses.
//
// A driver has the same number for its life. When Consul has another one, it is made anew.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/leadership/balancer.h"
#include "net/carrier.h"
#include "net/transport.h"
#include "runtime/log.h"
#include "runtime/loop.h"
#include "runtime/queue_driver.h"
#include "wire/fleet.h"

namespace lictor::runtime {

/// Runs a queue: makes its driver, and makes it anew when the number of partitions changes. On the
/// loop's thread.
class QueueSupervisor : public Task {
 public:
  /// `parts.options.partitions`: how many there should be. The references must outlive it.
  QueueSupervisor(QueueDriver::Parts parts, std::uint32_t weight, Loop& loop,
                  net::Transport& transport, net::Carrier& commits, exec::ProcessHost& host);
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
  [[nodiscard]] std::uint32_t partitions() const { return driver_ ? count_ : 0; }
  /// How many this host asks for, as its entry among the members says: those of its configuration,
  /// or, while its token may not change the number, those that there are.
  [[nodiscard]] std::uint32_t wish() const;
  /// Why the queue is not served here yet; empty: it is.
  [[nodiscard]] std::string waits_for() const;

 private:
  // Shared with callbacks that may come after the supervisor's end.
  struct Inbox {
    std::mutex mutex;
    std::vector<std::function<void(Instant)>> replies;
    Loop* loop = nullptr;
  };
  void send(const char* name, http::Request request,
            std::function<void(Instant, const http::Response&)> on_reply);
  void ask(Instant now);
  void on_undivided(Instant now, const http::Response& response);
  void on_fleet(Instant now, const wire::FleetRead& fleet);
  void on_running(const wire::FleetRead& fleet);
  void divide(const wire::FleetRead& fleet);
  void ask_right();
  void change_refused(Instant now, const std::string& error);
  void write_refused(Instant now, const http::Response& response, const std::string& error);
  void check_undivided();
  void create_count(const wire::FleetRead& fleet);
  [[nodiscard]] std::string why_not_create(Instant now, const wire::FleetRead& fleet);
  void tell_members(const wire::FleetRead& fleet);
  void change_count();
  void make_undivided(bool only_undivided);
  void make_driver(std::uint32_t count, std::uint64_t index, bool only_undivided);
  void drop_driver();
  void complain(const char* about, const std::string& message, const std::string& reason,
                Level level = Level::kWarn);

  QueueDriver::Parts parts_;  // runners are the driver's while there is one
  std::uint32_t wanted_;
  std::uint32_t weight_;
  Loop& loop_;
  net::Transport& transport_;
  net::Carrier& commits_;
  exec::ProcessHost& host_;
  const std::shared_ptr<Inbox> inbox_;

  std::unique_ptr<QueueDriver> driver_;
  std::uint32_t count_ = 0;       // of the driver
  std::uint32_t last_count_ = 1;  // of the last one
  std::uint64_t count_index_ = 0;
  core::CountChange change_;
  bool divided_ = false;    // Consul has a number
  bool finishing_ = false;  // this host holds all and ends its jobs
  bool changing_ = false;   // the new number is being written
  bool renewing_ = false;   // the driver stops, to be made anew
  bool stopping_ = false;
  bool may_change_ = false;  // the token may change the number to wanted_
  Instant ask_right_at_ = Instant::min();
  Duration refused_pause_{};  // after a change that Consul refused
  std::vector<core::BalancerMember> told_members_;
  std::map<std::string, std::string> said_;  // the last complaint about each, said once
  // The newest lock that is free without an orderly release: its ModifyIndex, and since when it is
  // seen so.
  std::uint64_t lost_at_ = 0;
  Instant lost_since_{};
  bool asking_ = false;
  Instant ask_at_ = Instant::min();
};

}  // namespace lictor::runtime
