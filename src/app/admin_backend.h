#pragma once

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

  /// What is given to read runs on the loop's thread. `token` is that of the admin APIs.
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
  struct LeaderAnswers {
    std::mutex mutex;  // held while they are asked, so that one asks for all
    Instant asked_at{};
    std::string target;
    std::vector<Answer> answers;
  };
  struct KnownFleet {
    std::mutex mutex;  // held while Consul and the members are asked
    Instant asked_at = Instant::min();
    Result<cluster::Fleet> fleet = cluster::Fleet{};
    LeaderAnswers leaders;
  };
  [[nodiscard]] const admin::StoredQueue* find(const std::string& queue) const;
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

  std::mutex mutex_;  // for what follows; held while Consul is asked, so that one asks for all
  Instant asked_at_ = Instant::min();
  Instant answered_at_ = Instant::min();
  admin::ConsulTrouble trouble_;
};

}  // namespace lictor::app
