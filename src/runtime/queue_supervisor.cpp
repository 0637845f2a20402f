#include "runtime/queue_supervisor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "runtime/log.h"

namespace lictor::runtime {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRetryPause = 1s;
// A change among few members is known within 2 s; the more members, the less often each asks.
constexpr Duration kAskInterval = 2s;
constexpr Duration kAskIntervalPerMember = 40ms;
// An operator grants a missing rule by hand.
constexpr Duration kRightPause = 1min;
// Each try of a change stops all jobs. Doubled each time, since only a person can mend it.
constexpr Duration kMostRefusedPause = 1h;

}  // namespace

QueueSupervisor::QueueSupervisor(QueueDriver::Parts parts, std::uint32_t weight, Loop& loop,
                                 net::Transport& transport, net::Carrier& commits,
                                 exec::ProcessHost& host)
    : parts_(std::move(parts)),
      wanted_(parts_.options.partitions),
      weight_(weight),
      loop_(loop),
      transport_(transport),
      commits_(commits),
      host_(host),
      inbox_(std::make_shared<Inbox>()) {
  inbox_->loop = &loop_;
}

QueueSupervisor::~QueueSupervisor() {
  const std::lock_guard lock{inbox_->mutex};
  inbox_->loop = nullptr;
  inbox_->replies.clear();
}

void QueueSupervisor::send(const char* name, http::Request request,
                           std::function<void(Instant, const http::Response&)> on_reply) {
  asking_ = true;
  transport_.send(std::move(request), [this, name, inbox = inbox_,
                                       on_reply = std::move(on_reply)](http::Response response) {
    const std::lock_guard lock{inbox->mutex};
    if (inbox->loop == nullptr) return;  // `this` is gone
    const Duration took = boot_now() - response.sent_at;
    for (Observer* observer : parts_.observers)
      observer->on_reply(this->name(), name, response, took);
    inbox->replies.emplace_back([this, on_reply, response = std::move(response)](Instant now) {
      asking_ = false;
      on_reply(now, response);
    });
    inbox->loop->wake();
  });
}

void QueueSupervisor::read_wall_clock() {
  if (driver_) driver_->read_wall_clock();
}

void QueueSupervisor::request_stop() {
  stopping_ = true;
  if (driver_) driver_->request_stop();
}

bool QueueSupervisor::stopped() const { return stopping_ && (!driver_ || driver_->stopped()); }

void QueueSupervisor::reconfigure(const core::QueueOptions& options, std::uint32_t weight,
                                  Runners runners) {
  weight_ = weight;
  parts_.options.take_limits(options);
  if (std::exchange(wanted_, options.partitions) != wanted_) {
    may_change_ = false;
    ask_right_at_ = Instant::min();
    refused_pause_ = {};
  }
  if (wanted_ > 1) ask_at_ = std::min(ask_at_, boot_now());
  if (driver_) return driver_->reconfigure(options, std::move(runners));
  parts_.runners = std::move(runners);
}

std::uint32_t QueueSupervisor::wish() const { return may_change_ ? wanted_ : last_count_; }

std::string QueueSupervisor::waits_for() const {
  if (driver_) return {};
  for (const char* about : {"count", "members"}) {
    if (const auto said = said_.find(about); said != said_.end()) return said->second;
  }
  return "the number of its partitions is not known yet";
}

void QueueSupervisor::step(Instant now) {
  std::vector<std::function<void(Instant)>> replies;
  {
    const std::lock_guard lock{inbox_->mutex};
    replies.swap(inbox_->replies);
  }
  for (const auto& reply : replies) {
    // A driver that is made after the stop was asked for would never hear of it.
    if (stopping_ && !driver_) break;
    reply(now);
  }
  if (driver_) driver_->step(now);
  if (driver_ && driver_->count_changed() && !stopping_ && !renewing_) {
    // Also where this daemon's configuration asks for one partition, and it was cut off while the
    // others divided the queue.
    log(Level::kInfo, "the number of partitions has changed",
        {{"queue", name()}, {"before", std::to_string(count_)}});
    renewing_ = true;
    driver_->request_stop();
  }
  if (driver_ && driver_->locks_kept_by() && !stopping_ && !renewing_) change_count();
  // A job that did not end has it stop before the number was changed.
  if (driver_ && driver_->stopped() && !stopping_) renewing_ = true;
  if (driver_ && renewing_ && !stopping_ && driver_->stopped() && !driver_->any_job()) {
    drop_driver();
  }
  if (!asking_ && !stopping_ && now >= ask_at_) ask(now);
}

Instant QueueSupervisor::next_deadline() const {
  const Instant ask_at = asking_ || stopping_ ? Instant::max() : ask_at_;
  return driver_ ? std::min(ask_at, driver_->next_deadline()) : ask_at;
}

void QueueSupervisor::ask(Instant now) {
  ask_at_ = now + kRetryPause;
  const wire::Binding& binding = parts_.binding;
  if (wanted_ > 1 || divided_) {
    return send("read_members", wire::read_fleet(binding, driver_ == nullptr),
                [this](Instant at, const http::Response& response) {
                  on_fleet(at, wire::decode_fleet(parts_.binding, response));
                });
  }
  if (driver_) {
    ask_at_ = Instant::max();
    return;
  }
  send("read_partitions",
       wire::blocking_read(binding, wire::kv_path(binding.layout.partitions_key), 0),
       [this](Instant at, const http::Response& response) { on_undivided(at, response); });
}

// A queue that should have one partition has no key for that. The rights to read or to write it may
// be missing: then nobody could have divided the queue either.
void QueueSupervisor::on_undivided(Instant now, const http::Response& response) {
  if (http::replied(response, 403)) {
    make_undivided(false);
    return complain("count", "the number of partitions may not be read; this daemon takes it for 1",
                    R"(the token needs the rule key ")" + parts_.binding.layout.partitions_key +
                        R"(" { policy = "read" })");
  }
  if (http::replied(response, 200)) {
    divided_ = true;
    ask_at_ = now;
    return;
  }
  if (!http::replied(response, 404) || response.consul_index == 0) {
    return complain("members", "a request to Consul failed; trying again",
                    "reading the number of partitions: " + wire::describe(response));
  }
  check_undivided();
}

void QueueSupervisor::check_undivided() {
  send("read_partitions", wire::probe_undivided(parts_.binding),
       [this](Instant, const http::Response& probed) {
         std::string error;
         const bool applied = wire::is_count_written(parts_.binding, probed, error);
         if (applied || wire::is_denied(error)) return make_undivided(applied);
         complain("members", "a request to Consul failed; trying again",
                  "reading the number of partitions: " + error);
       });
}

void QueueSupervisor::make_undivided(bool only_undivided) {
  if (wanted_ == 1) ask_at_ = Instant::max();
  make_driver(1, 0, only_undivided);
}

// Asked again while the right is missing: a token gets rights without a word to the daemon.
void QueueSupervisor::ask_right() {
  send("probe_partitions", wire::probe_change(parts_.binding, wanted_),
       [this](Instant now, const http::Response& response) {
         ask_at_ = now;
         std::string error;
         const auto may = wire::may_change(parts_.binding, response, error);
         may_change_ = may.value_or(false);
         ask_right_at_ = now + (may ? kRightPause : kRetryPause);
         if (may_change_) {
           said_.erase("right");
         } else if (may) {
           change_refused(now, error);
         } else {
           ask_at_ = ask_right_at_;
           complain("members", "a request to Consul failed; trying again",
                    "asking for the right to change the number of partitions: " + error);
         }
       });
}

// A condition that does not hold (409) is another host's change, which the next reading shows. All
// other refusals would come again, and each try stops all jobs.
void QueueSupervisor::write_refused(Instant now, const http::Response& response,
                                    const std::string& error) {
  const bool refused = response.delivery == http::Delivery::kReplied && response.status >= 400 &&
                       response.status < 500 && !http::over_limit(response);
  if (!refused || (response.status == 409 && !wire::is_denied(error))) return;
  refused_pause_ = std::clamp(refused_pause_ * 2, kRightPause, kMostRefusedPause);
  ask_right_at_ = now + refused_pause_;
  change_refused(now, error);
}

// Other hosts see by this host's entry that it does not ask for the change any more.
void QueueSupervisor::change_refused(Instant now, const std::string& error) {
  may_change_ = false;
  ask_right_at_ = std::max(ask_right_at_, now + kRightPause);
  complain("right",
           "this daemon may not change the number of partitions; it goes on with the number that "
           "there is",
           fmt::format("its configuration asks for {}: {}", wanted_, error), Level::kError);
}

void QueueSupervisor::on_fleet(Instant now, const wire::FleetRead& fleet) {
  const auto members = static_cast<Duration::rep>(fleet.members.size());
  ask_at_ = now + std::max<Duration>(kAskInterval, kAskIntervalPerMember * members);
  if (!fleet.error.empty()) {
    return complain("members", "the members and partitions of the queue cannot be read",
                    fleet.error);
  }
  said_.erase("members");
  const bool to_change = wanted_ != fleet.count.value_or(1) && !may_change_;
  if (to_change && now >= ask_right_at_ && (driver_ || !fleet.count) && !renewing_) {
    return ask_right();
  }
  if (driver_) return on_running(fleet);
  if (fleet.count) {
    make_driver(*fleet.count, fleet.count_index, false);
    return tell_members(fleet);
  }
  divided_ = false;
  if (wanted_ == 1) return;  // the next answer is about one partition
  if (!may_change_) return check_undivided();
  if (const std::string reason = why_not_create(now, fleet); !reason.empty()) {
    return complain("count", "waiting until the queue can be divided into partitions", reason);
  }
  create_count(fleet);
}

void QueueSupervisor::on_running(const wire::FleetRead& fleet) {
  if (renewing_ || stopping_) return;
  if (fleet.count && fleet.count_index < count_index_) return;  // an older answer
  if (!fleet.count && count_index_ == 0) return divide(fleet);
  if (!fleet.count || fleet.count_index != count_index_) {
    log(Level::kInfo,
        fleet.count ? "the number of partitions has changed" : "the number of partitions is gone",
        {{"queue", name()},
         {"partitions", fleet.count ? std::to_string(*fleet.count) : std::string{}},
         {"before", std::to_string(count_)}});
    renewing_ = true;
    return driver_->request_stop();
  }
  tell_members(fleet);
  if (wanted_ != count_ && change_.to == 0 && may_change_) {
    complain("count", "the number of partitions stays until all members want another one",
             fmt::format("there are {}, this daemon's configuration asks for {}", count_, wanted_));
  }
}

// From one partition, with no number in Consul yet.
void QueueSupervisor::divide(const wire::FleetRead& fleet) {
  if (wanted_ == 1 || !may_change_) return;
  if (core::common_wish(fleet.members) != wanted_) {
    return complain("count", "the queue is not divided until all members want it",
                    fmt::format("this daemon's configuration asks for {} partitions", wanted_));
  }
  renewing_ = true;
  driver_->request_stop();
}

void QueueSupervisor::tell_members(const wire::FleetRead& fleet) {
  change_ = core::plan_change(fleet.members, {{parts_.options.node, weight_}, wish()}, count_);
  if (finishing_) return;
  if (change_.is_ours && driver_->holds_all()) {
    log(Level::kInfo, "the number of partitions changes: this daemon holds all and ends its jobs",
        {{"queue", name()}, {"partitions", std::to_string(change_.to)}});
    finishing_ = true;
    return driver_->request_stop(true);
  }
  if (change_.members == told_members_) return;
  told_members_ = change_.members;
  driver_->members_seen(change_.members);
}

// All is held and nothing runs: the moment to write another number. Whatever becomes of it, the
// driver is made anew with what Consul has then.
void QueueSupervisor::change_count() {
  if (changing_ || asking_) return;
  changing_ = true;
  const auto over = [this] {
    changing_ = false;
    renewing_ = true;
    driver_->request_stop();
  };
  if (!change_.is_ours || !driver_->holds_all()) return over();
  send("change_partitions",
       wire::change_count(parts_.binding, change_.to, count_, count_index_,
                          *driver_->locks_kept_by()),
       [this, over](Instant now, const http::Response& response) {
         std::string error;
         if (wire::is_count_written(parts_.binding, response, error)) {
           refused_pause_ = {};
         } else {
           complain("count", "the number of partitions could not be changed", error);
           write_refused(now, response, error);
         }
         over();
       });
}

// The first number is written when all members want it, and nobody leads who may not know of it.
std::string QueueSupervisor::why_not_create(Instant now, const wire::FleetRead& fleet) {
  for (const core::FleetMember& each : fleet.members) {
    if (each.wish != wanted_ && each.member.id != parts_.options.node) {
      return fmt::format("{} asks for {} partitions, this daemon for {}", each.member.id, each.wish,
                         wanted_);
    }
  }
  std::uint64_t lost_at = 0;
  for (const wire::FleetRead::Lock& lock : fleet.locks) {
    if (!lock.read.session.empty()) return lock.read.holder + " holds " + lock.key;
    if (!lock.read.released) lost_at = std::max(lost_at, lock.read.modify_index);
  }
  if (lost_at == 0) return {};
  if (std::exchange(lost_at_, lost_at) != lost_at) lost_since_ = now;
  if (now - lost_since_ >= core::kMostLockDelay) return {};
  return "a leader was lost, and its lock-delay is not over";
}

void QueueSupervisor::create_count(const wire::FleetRead& fleet) {
  send("create_partitions", wire::create_count(parts_.binding, wanted_, fleet.locks, wall_now()),
       [this](Instant now, const http::Response& response) {
         ask_at_ = now;  // it may be another daemon's by now
         std::string error;
         if (wire::is_count_written(parts_.binding, response, error)) {
           refused_pause_ = {};
           log(Level::kInfo, "the queue is divided into partitions",
               {{"queue", name()}, {"partitions", std::to_string(wanted_)}});
         } else {
           ask_at_ = now + kRetryPause;
           complain("count", "the number of partitions could not be written", error);
           write_refused(now, response, error);
         }
       });
}

void QueueSupervisor::make_driver(std::uint32_t count, std::uint64_t index, bool only_undivided) {
  std::erase_if(said_, [](const auto& each) { return each.first != "right"; });
  divided_ = index != 0;
  count_ = last_count_ = count;
  count_index_ = index;
  QueueDriver::Parts parts{parts_.options,    parts_.binding,   std::move(parts_.runners),
                           parts_.lease_slot, parts_.state_dir, parts_.observers};
  parts.options.partitions = count;
  parts.options.partitions_index = index;
  parts.options.only_undivided = only_undivided;
  driver_ = std::make_unique<QueueDriver>(std::move(parts), loop_, transport_, commits_, host_);
  driver_->start();
  driver_->step(boot_now());
}

void QueueSupervisor::drop_driver() {
  parts_.options.first_attempt = driver_->next_attempt();
  parts_.runners = driver_->take_runners();
  driver_.reset();
  count_ = 0;
  renewing_ = finishing_ = false;
  change_ = {};
  told_members_.clear();
  ask_at_ = Instant::min();
}

void QueueSupervisor::complain(const char* about, const std::string& message,
                               const std::string& reason, Level level) {
  std::string text = message + ": " + reason;
  if (std::exchange(said_[about], text) == text) return;
  log(level, message, {{"queue", name()}, {"error", reason}});
}

}  // namespace lictor::runtime
