#pragma once

// Finds the admin API's answers. Handlers run on the HTTP server's workers, while the state of the
// daemon belongs to the loop's thread. A question is posted to the loop as a function, and the
// worker waits for the result, for 2 s at most, so a loop that hangs keeps no worker.
//
//   status(), why()       this daemon, on the loop's thread; std::nullopt: no answer in time
//   consul_trouble()      Consul, over the admin API's own transport
//   fleet()               Consul and the members of the queue
//   ask_...()             the admin APIs of other members
//
// Many open pages ask the same within a second. So consul_trouble() and fleet() keep their answers
// for 1 or 2 s. Each holds a mutex while its question is under way; other callers wait for that
// answer. Many pages cost Consul and the members as much as one.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "admin/routes.h"
#include "net/transport.h"
#include "runtime/loop.h"

namespace lictor::app {

/// Answers the admin API out of the daemon, which lives on the loop's thread. What it refers to
/// must outlive it, and `read_status` the loop's run().
class AdminBackend : public admin::Backend {
 public:
  using ReadStatus = std::function<admin::Status()>;
  using ReadWhy =
      std::function<std::optional<std::string>(const std::string& queue, const std::string& id)>;

  /// `read_status` and `read_why` run on the loop's thread. `token` gives the bearer token of the
  /// admin APIs, this one's and the others'; it is read again for each question, as its file may
  /// change.
  AdminBackend(runtime::Loop& loop, net::Transport& transport, std::string node,
               const admin::StoredQueues& queues, ReadStatus read_status, ReadWhy read_why,
               std::function<std::string()> token);

  [[nodiscard]] std::optional<admin::Status> status() override;
  [[nodiscard]] admin::ConsulTrouble consul_trouble() override;
  [[nodiscard]] std::optional<std::string> why(const std::string& queue,
                                               const std::string& id) override;
  [[nodiscard]] Result<cluster::Fleet> fleet(const std::string& queue) override;
  [[nodiscard]] Result<std::string> ask_member(const std::string& queue, const std::string& node,
                                               const std::string& target) override;
  [[nodiscard]] Result<std::string> ask_leader_of(const std::string& queue, const std::string& id,
                                                  const std::string& target) override;
  [[nodiscard]] std::vector<Answer> ask_leaders(const std::string& queue,
                                                const std::string& target) override;

 private:
  struct KnownFleet {
    std::mutex mutex;  // held while Consul and the members are asked
    Instant asked_at = Instant::min();
    Result<cluster::Fleet> fleet = cluster::Fleet{};
  };
  [[nodiscard]] const admin::StoredQueue* find(const std::string& queue) const;
  /// Asks the admin API of a member. Errors: also if the member is this daemon, which has no answer
  /// of its own then: Consul shows a leader that this daemon no longer is, or is not yet.
  [[nodiscard]] Result<std::string> answer_of(const cluster::Member& member,
                                              const std::string& target) const;

  runtime::Loop& loop_;
  net::Transport& transport_;
  const std::string node_;
  const admin::StoredQueues& queues_;
  const ReadStatus read_status_;
  const ReadWhy read_why_;
  const std::function<std::string()> token_;
  std::map<std::string, KnownFleet> fleets_;  // an entry for each queue, made at the start

  std::mutex mutex_;  // for the members below; held while Consul is asked: one asks for all
  Instant asked_at_ = Instant::min();     // the last time, whatever came back
  Instant answered_at_ = Instant::min();  // the last time that nothing was wrong
  admin::ConsulTrouble trouble_;
};

}  // namespace lictor::app
