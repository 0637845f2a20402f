#include "app/member_entry.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/host_name.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/time_text.h"
#include "client/config_digest.h"
#include "runtime/log.h"

namespace lictor::app {
namespace {

constexpr std::size_t kMaxErrorBytes = 500;

std::string dumped(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

MemberEntry::MemberEntry(const Config& config, const std::vector<std::string>& admin_urls)
    : value_{{"node", config.node},       {"host", host_name()},
             {"pid", getpid()},           {"admin", admin_urls},
             {"version", LICTOR_VERSION}, {"since", format_rfc3339(wall_now())}} {
  set_configuration(config);
}

void MemberEntry::set_configuration(const Config& config) {
  value_["config"] = config.digest;
  value_["parts"] = config.parts;
  // The queues that keep a history: the cancel command adds entries there.
  nlohmann::json queues = nlohmann::json::array();
  for (const QueueConfig& queue : config.queues) {
    if (queue.options.history) queues.push_back(queue.options.queue);
  }
  value_["history"] = std::move(queues);
  nlohmann::json weights;
  for (const QueueConfig& queue : config.queues) {
    if (queue.weight > 1) weights[queue.options.queue] = queue.weight;
  }
  set_member("weights", std::move(weights));
}

// null: the entry is without the member.
void MemberEntry::set_member(const char* member, nlohmann::json value) {
  value_.erase(member);
  if (!value.is_null()) value_[member] = std::move(value);
}

// An entry leaves out a queue with one partition: for its readers, a missing number is 1.
bool MemberEntry::set_desired_partitions(const std::string& queue, std::uint32_t number) {
  const auto last = desired_partitions_.try_emplace(queue, 1).first;
  if (std::exchange(last->second, number) == number) return false;
  nlohmann::json partitions;
  for (const auto& [name, count] : desired_partitions_) {
    if (count > 1) partitions[name] = count;
  }
  set_member("partitions", std::move(partitions));
  return true;
}

bool MemberEntry::set_given_up(const std::string& queue, const std::string& nonce) {
  if (std::exchange(given_up_[queue], nonce) == nonce) return false;
  value_["given_up"] = given_up_;
  return true;
}

std::string MemberEntry::member_value() const { return dumped(value_); }

std::string MemberEntry::leader_value(const std::string& identity) const {
  nlohmann::json leader = value_;
  const nlohmann::json& urls = value_["admin"];
  leader["admin"] = urls.empty() ? nlohmann::json("") : urls.front();
  leader["instance"] = identity;
  leader["started"] = leader["since"];  // the time of election goes to "since"
  leader.erase("since");
  for (const char* reloadable :
       {"config", "parts", "history", "partitions", "weights", "given_up", "reload_error"}) {
    leader.erase(reloadable);
  }
  return dumped(leader);
}

std::string MemberEntry::reloaded(const Config& next) {
  const client::ConfigParts before = value_["parts"];
  set_configuration(next);
  value_.erase("reload_error");
  return client::difference(before, next.parts);
}

void MemberEntry::reload_refused(const std::string& error) {
  value_["reload_error"] = excerpt(error, kMaxErrorBytes);
}

// One session holds the entries in all queues, so the checks of the first queue count for all.
runtime::Membership::Options membership_of(const Config& config, const MemberEntry& entry) {
  runtime::Membership::Options options;
  options.node = config.node;
  options.value = entry.member_value();
  for (const QueueConfig& queue : config.queues) {
    options.keys.push_back(queue.layout.members_prefix + config.node);
  }
  options.session_checks = config.queues.front().session_checks;
  options.state_dir = config.state_dir;
  return options;
}

// A follower shows no states of tasks: a daemon knows only the tasks of partitions that it leads.
admin::QueueStatus status_of(const runtime::QueueSupervisor& queue, bool stopping,
                             std::vector<std::string> types, const exec::ActiveLogs& logs) {
  using Role = admin::QueueStatus::Role;
  const Instant now = boot_now();
  admin::QueueStatus status;
  status.name = queue.name();
  status.types = std::move(types);
  status.log_error = logs.newest_error();
  status.partitions = queue.partitions();
  const runtime::QueueDriver* driver = queue.driver();
  if (driver == nullptr) return status;
  const core::Queue& core = driver->core();
  if (core.leading(now)) status.role = stopping ? Role::kDraining : Role::kLeading;
  for (std::uint32_t i = 0; i < status.partitions; ++i) {
    if (core.leading(now, i)) status.leads.push_back(i);
  }
  status.cannot_start = core.cannot_start();
  admin::read_gauges(core, now, status);
  if (status.role == Role::kFollowing) return status;
  using enum core::TaskState;
  for (const auto state : {kUnread, kDistant, kUnreadable, kClaiming, kChecking, kClaimed, kRunning,
                           kEnding, kBurying, kLeftover}) {
    status.states.emplace_back(core::name_of(state), core.count(state));
  }
  for (std::size_t i = 0; i < core::kLacks; ++i) {
    const auto lack = static_cast<core::Lack>(i);
    // A key that cannot be read is in no partition; only the leader of partition 0 counts it.
    if (lack == core::Lack::kName && !core.leading(now, 0)) continue;
    status.states.emplace_back(core::name_of(lack), core.count(lack));
  }
  const core::Scheduler::Stats schedules = core.schedules();
  status.schedules = {
      {"active", schedules.active}, {"paused", schedules.paused}, {"bad", schedules.bad}};
  return status;
}

std::vector<admin::WorkerStatus> workers_of(
    const std::map<std::pair<std::string, std::string>, worker::Figures>& all,
    const std::string& queue) {
  std::vector<admin::WorkerStatus> workers;
  for (const auto& [name, figures] : all) {
    if (name.first != queue) continue;
    admin::WorkerStatus& one = workers.emplace_back();
    one.type = name.second;
    one.states = {{"starting", figures.starting},
                  {"idle", figures.idle},
                  {"busy", figures.busy},
                  {"ending", figures.ending}};
    for (std::size_t i = 0; i < worker::kEndReasons; ++i) {
      one.ends.emplace_back(name_of(static_cast<worker::EndReason>(i)), figures.ends.at(i));
    }
  }
  return workers;
}

// Follows the order of a stop: jobs end, Consul takes their ends, then the locks.
std::string stop_waits_for(const std::vector<std::unique_ptr<runtime::QueueSupervisor>>& queues) {
  std::size_t jobs = 0;
  std::size_t unacked = 0;
  std::string locks;
  Duration patience{};
  for (const auto& queue : queues) {
    const runtime::QueueDriver* driver = queue->driver();
    if (driver == nullptr || queue->stopped()) continue;
    if (driver->running() != 0) patience = std::max(patience, queue->drain_timeout());
    jobs += driver->running();
    unacked += driver->core().count(core::TaskState::kEnding);
    locks += (locks.empty() ? "" : ", ") + queue->name();
  }
  if (jobs != 0) {
    return fmt::format("stopping: waits for {}, for {} at most (drain_timeout)",
                       counted(jobs, "running job"), format_duration(patience));
  }
  if (unacked != 0) {
    return fmt::format("stopping: waits for Consul to take the ends of {}",
                       counted(unacked, "job"));
  }
  return locks.empty() ? "" : "stopping: waits for Consul to take back the session of " + locks;
}

// Called after each turn, so only changes go to systemd. A stop that takes long is logged as well:
// people look at the log when "systemctl stop" hangs.
void ServiceStatus::report(Instant now, const Now& status) {
  constexpr Duration kLogInterval = std::chrono::seconds{5};
  if (status.stopping && !status.waits_for.empty()) {
    if (log_at_ == Instant::max()) log_at_ = now + kLogInterval;
    if (now >= log_at_) {
      log_at_ = now + kLogInterval;
      runtime::log(runtime::Level::kInfo, status.waits_for);
    }
  }
  std::string text = !status.waits_for.empty() ? status.waits_for
                     : status.leading.empty()
                         ? "following"
                         : fmt::format("leading {}", fmt::join(status.leading, ", "));
  if (!status.restart_for.empty()) text += "; a restart is needed for " + status.restart_for;
  if (std::exchange(notified_, text) == text) return;
  notifier_.notify("STATUS=" + excerpt(text, 1000));
}

}  // namespace lictor::app
