#include "runtime/queue_driver.h"

#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "runtime/fact_log.h"
#include "runtime/log.h"
#include "wire/commit.h"
#include "wire/fleet.h"
#include "wire/reason_text.h"
#include "wire/record.h"
#include "wire/transaction_plan.h"

// From mimalloc; null if the program is not linked with it.
extern "C" void mi_collect(bool force) __attribute__((weak));

namespace lictor::runtime {
namespace {

// Returns all free memory of the allocator to the system, even small scattered pieces; with
// mimalloc only the memory that this thread has allocated.
void trim_memory() {
  if (mi_collect != nullptr) return mi_collect(true);
  malloc_trim(0);
}

bool is_about_jobs(const core::Effect& effect) {
  return std::holds_alternative<core::StartJob>(effect) ||
         std::holds_alternative<core::StopJob>(effect) ||
         std::holds_alternative<core::ExtendLease>(effect) ||
         std::holds_alternative<core::EndLease>(effect);
}

}  // namespace

core::JobExited to_core(const wire::Reserved& reserved, const std::string& task_key,
                        exec::Exit exit) {
  core::JobExited event;
  event.attempt = exit.attempt;
  event.ending = exit.ending;
  event.error = std::move(exit.error);
  event.output_tail = std::move(exit.output_tail);
  // Limit it before it becomes nanoseconds, of which some 292 years fit.
  if (exit.retry_after) event.retry_after = std::min(*exit.retry_after, core::kLongestRetryAfter);
  event.taken = exit.taken;
  event.result_fault = std::move(exit.result_fault);
  if (event.ending != core::JobEnding::kDone) return event;
  if (exit.result) {
    if (auto checked = wire::check_result(*exit.result)) {
      event.result = std::move(*exit.result);
    } else {
      event.result_fault = std::move(checked.error().message);
    }
  }
  if (exit.commit) {
    auto writes = wire::read_commit(*exit.commit, reserved, task_key);
    if (writes) {
      event.writes = std::move(*writes);
    } else {
      event.ending = core::JobEnding::kRetry;
      event.error = "its KV writes cannot be made: " + writes.error().message;
    }
  }
  return event;
}

namespace {

// The core fills transactions up to Consul's limits, while only the wire layer knows how many
// operations and bytes a write becomes.
core::QueueOptions with_costs(core::QueueOptions options, const wire::Binding& binding) {
  options.costs = std::make_shared<wire::TransactionPlan>(binding.layout, binding.node);
  return options;
}

// The labels of requests in the metrics. A blocking query has a name of its own: most of its time
// is waiting, and would hide the latency of plain reads.
const char* name_of(const core::AcquireLock&) { return "acquire_lock"; }
const char* name_of(const core::ReleaseLock&) { return "release_lock"; }
const char* name_of(const core::CreateSession&) { return "create_session"; }
const char* name_of(const core::RenewSession&) { return "renew_session"; }
const char* name_of(const core::DestroySession&) { return "destroy_session"; }
const char* name_of(const core::ReadLeader& effect) {
  return effect.consistent ? "read_leader" : "watch_leader";
}
const char* name_of(const core::WatchControl&) { return "watch_control"; }
const char* name_of(const core::ListTasks& effect) {
  return effect.index == 0 ? "list_tasks" : "watch_tasks";
}
const char* name_of(const core::FetchTasks&) { return "fetch_tasks"; }
const char* name_of(const core::CheckTasks&) { return "check_tasks"; }
const char* name_of(const core::ReadRate&) { return "read_rate"; }
const char* name_of(const core::ReadOwners&) { return "read_owners"; }
const char* name_of(const core::ListHistory&) { return "list_history"; }
const char* name_of(const core::ListSchedules& effect) {
  return effect.index == 0 ? "list_schedules" : "watch_schedules";
}

// Runs on the thread that received the reply.
void notify(const std::vector<Observer*>& observers, const std::string& queue, const char* request,
            const http::Response& response) {
  const Duration took = boot_now() - response.sent_at;
  for (Observer* observer : observers) observer->on_reply(queue, request, response, took);
}

template <class Effect>
core::Event decode_reply(const wire::Binding& binding, const Effect& effect,
                         http::Response response) {
  if constexpr (requires { wire::decode(binding.layout, effect, std::move(response)); }) {
    return wire::decode(binding.layout, effect, std::move(response));
  } else if constexpr (requires { wire::decode(binding, effect, response); }) {
    return wire::decode(binding, effect, response);
  } else {
    return wire::decode(effect, response);
  }
}

}  // namespace

void QueueDriver::Inbox::put(core::Event event, bool lent) {
  bool first = false;
  {
    const std::lock_guard lock{mutex};
    first = events.empty();
    events.push_back(std::move(event));
  }
  if (!first) return;
  if (lent) {
    loop->lend();
  } else {
    loop->wake();
  }
}

QueueDriver::QueueDriver(Parts parts, Loop& loop, net::Transport& transport,
                         net::ConsulClient& commits, exec::ProcessHost& host)
    : options_(parts.options),
      binding_(std::make_shared<const wire::Binding>(std::move(parts.binding))),
      runners_(std::move(parts.runners)),
      lease_slot_(parts.lease_slot),
      session_file_(parts.state_dir, options_.queue, options_.node, options_.session_ttl,
                    options_.lock_delay),
      loop_(loop),
      transport_(transport),
      commits_(commits),
      host_(host),
      observers_(std::make_shared<const std::vector<Observer*>>(std::move(parts.observers))),
      core_(with_costs(std::move(parts.options), *binding_), random_seed()),
      inbox_(std::make_shared<Inbox>()),
      locks_(options_.partitions) {
  inbox_->loop = &loop_;
}

QueueDriver::~QueueDriver() {
  for (const auto& [id, request] : in_flight_) transport_.cancel(request);
  for (const RequestId query : lock_queries_) {
    if (query) transport_.cancel(query);
  }
}

void QueueDriver::start() {
  read_wall_clock();
  held_ = session_file_.load_held(options_.partitions);
  inbox_->put(core::Started{session_file_.load(), held_});
}

void QueueDriver::read_wall_clock() { inbox_->put(core::WallClockRead{wall_now(), boot_now()}); }

bool QueueDriver::holds_all() const {
  for (std::uint32_t i = 0; i < options_.partitions; ++i) {
    if (!core_.holds_lock(i)) return false;
  }
  return true;
}

// The old runners stay until the last of their jobs has ended; new attempts go to the new ones.
void QueueDriver::reconfigure(const core::QueueOptions& options, Runners runners) {
  options_.take_limits(options);
  schedules_->forget();
  old_runners_.push_back(std::exchange(runners_, std::move(runners)));
  inbox_->put(core::Reconfigured{std::make_shared<const core::QueueOptions>(options)});
}

// Drops only runners without jobs: a runner's destructor waits for its jobs and its threads, and
// this thread may be one that is lent to the loop. So it runs on the loop's own thread.
void QueueDriver::drop_old_runners() {
  const auto has_job = [this](const Runners& runners) {
    return std::any_of(running_.begin(), running_.end(), [&](const auto& job) {
      return std::any_of(runners.begin(), runners.end(),
                         [&](const auto& runner) { return runner.second.get() == job.second; });
    });
  };
  const auto idle = std::stable_partition(old_runners_.begin(), old_runners_.end(), has_job);
  for (auto each = idle; each != old_runners_.end(); ++each) {
    loop_.post([dropped = std::make_shared<Runners>(std::move(*each))] { dropped->clear(); });
  }
  old_runners_.erase(idle, old_runners_.end());
}

Runners QueueDriver::take_runners() {
  drop_old_runners();
  return std::move(runners_);
}

std::optional<std::string> QueueDriver::why(Instant now, const std::string& id) const {
  if (!core_.holds_lock()) return std::nullopt;
  std::vector<core::Reason> reasons = core_.why(now, binding_->layout.task_key(id));
  for (core::Reason& reason : reasons) {
    const auto job = running_.find(reason.attempt);
    if (job != running_.end()) reason.progress = job->second->progress(reason.attempt);
  }
  return wire::reasons_json(reasons, binding_->layout);
}

// Returns free memory a little after a long list, and after 1,000 tasks have gone: each took about
// a kilobyte.
void QueueDriver::release_memory(Instant now) {
  constexpr std::size_t kLong = 10'000;
  constexpr std::uint64_t kMany = 1000;
  constexpr Duration kPause = std::chrono::seconds{5};
  const bool is_long = std::any_of(events_.begin(), events_.end(), [](const core::Event& event) {
    const auto* listed = std::get_if<core::TasksListed>(&event);
    return listed != nullptr && listed->keys.size() > kLong;
  });
  events_.clear();
  const std::uint64_t gone = core_.discovered() - core_.waiting();
  if (is_long || gone > gone_at_release_ + kMany) release_at_ = std::min(release_at_, now + kPause);
  if (now < release_at_) return;
  release_at_ = Instant::max();
  gone_at_release_ = gone;
  trim_memory();
}

void QueueDriver::step(Instant now) {
  {
    const std::lock_guard lock{inbox_->mutex};
    events_.swap(inbox_->events);
  }
  std::move(inbox_->at_hand.begin(), inbox_->at_hand.end(), std::back_inserter(events_));
  inbox_->at_hand.clear();
  if (!old_runners_.empty()) drop_old_runners();
  if (events_.empty() && now < next_deadline()) return;
  for (const core::Event& event : events_) {
    std::visit(
        [&](const auto& e) {
          if constexpr (requires { e.request; }) {
            in_flight_.erase(e.request);
            committing_.erase(e.request);
          }
          if constexpr (requires { e.attempt; }) running_.erase(e.attempt);
        },
        event);
    note_lock(event);
  }
  if (events_.empty()) events_.emplace_back(core::TimePassed{});
  deliver(now);
}

// The warden learns of the lock before a job can start under it. It asks Consul before it releases
// a lock, since its knowledge may be out of date.
void QueueDriver::note_lock(const core::Event& event) {
  using Answer = core::LockReplied::Answer;
  if (const auto* reply = std::get_if<core::LockReplied>(&event)) {
    for (std::uint32_t i = 0; i < locks_.size(); ++i) {
      if (locks_[i].asked.request != reply->request) continue;
      if (reply->answer != Answer::kUnknown) locks_[i].answered = true;
      if (reply->answer == Answer::kAcquired) {
        keep_lock(i, locks_[i].asked.session, reply->modify_index);
      } else if (reply->answer == Answer::kHeld && !core_.holds_lock(i)) {
        keep_lock(i, {}, 0);
      }
    }
  } else if (const auto* destroyed = std::get_if<core::SessionDestroyed>(&event)) {
    if (destroyed->outcome != core::Outcome::kApplied) return;
    for (std::uint32_t i = 0; i < locks_.size(); ++i) keep_lock(i, {}, 0);
  }
}

void QueueDriver::keep_lock(std::uint32_t partition, const std::string& session,
                            std::uint64_t index) {
  locks_[partition].kept_session = session;
  host_.keep_lock(
      {lease_slot_ + partition, session, index, binding_->leader_value, options_.partitions});
}

// All events of a step reach the core together, so that their writes share transactions.
void QueueDriver::deliver(Instant now) {
  effects_.clear();
  core_.step(now, events_, effects_);
  // Jobs first: a request wakes other threads, which would compete for the processor.
  for (core::Effect& effect : effects_) {
    if (is_about_jobs(effect)) std::visit([this](auto& e) { carry_out(e); }, effect);
  }
  for (core::Effect& effect : effects_) {
    if (!is_about_jobs(effect)) std::visit([this](auto& e) { carry_out(e); }, effect);
  }
  watch_locks();
  release_memory(now);
}

Instant QueueDriver::next_deadline() const {
  if (!inbox_->at_hand.empty()) return Instant::min();
  return std::min(core_.next_deadline(), release_at_);
}

void QueueDriver::dispatch(const char* name, http::Request request, RequestId id,
                           std::function<core::Event(http::Response)> decode) {
  // Replies are decoded on the network thread: a long listing must not hold up the loop.
  in_flight_[id] = transport_.send(
      std::move(request), [inbox = inbox_, decode = std::move(decode), observers = observers_,
                           queue = options_.queue, name](http::Response response) {
        notify(*observers, queue, name, response);
        inbox->put(decode(std::move(response)));
      });
}

template <class Effect, class... Time>
void QueueDriver::send(const Effect& effect, Time... encoded_at) {
  dispatch(name_of(effect), wire::encode(*binding_, effect, encoded_at...), effect.request,
           [binding = binding_, effect](http::Response response) {
             return decode_reply(*binding, effect, std::move(response));
           });
}

// A repeated request is the same to the byte as the one whose outcome is unknown, so that Consul
// changes nothing if the first was applied.
void QueueDriver::carry_out(const core::AcquireLock& effect) {
  const std::uint32_t partition = effect.partition.number;
  KeptLock& lock = locks_[partition];
  lock.asked = effect;
  // Its reply may be lost.
  if (lock.kept_session != effect.session) keep_lock(partition, effect.session, 0);
  const bool is_new = !core_.holds_lock(partition) && std::exchange(lock.answered, false);
  if (is_new) lock.since = wall_now();
  send(effect, lock.since);
}

void QueueDriver::carry_out(const core::ReadLeader& effect) {
  if (options_.partitions == 1 || effect.consistent) return send(effect);
  if (auto answer = lock_watch_->add(effect)) inbox_->put(*std::move(answer));
}

// Asks for the locks of all partitions at once.
void QueueDriver::watch_locks() {
  if (options_.partitions == 1) return;
  while (const auto index = lock_watch_->next_query()) {
    auto done = [index = *index, watch = lock_watch_, inbox = inbox_, binding = binding_,
                 count = options_.partitions, observers = observers_,
                 queue = options_.queue](const http::Response& response) {
      notify(*observers, queue, "watch_leader", response);
      const auto locks = wire::decode_locks(*binding, count, response);
      for (core::LeaderRead& answer : watch->on_reply(index, locks)) inbox->put(std::move(answer));
      inbox->put(core::TimePassed{});  // starts the next query
    };
    lock_queries_[*index == 0 ? 0 : 1] =
        transport_.send(wire::watch_locks(*binding_, options_.partitions, *index), std::move(done));
  }
}

void QueueDriver::carry_out(const core::ListSchedules& effect) {
  dispatch(name_of(effect), wire::encode(*binding_, effect), effect.request,
           [effect, binding = binding_, cache = schedules_](http::Response response) {
             const Instant begin = boot_now();
             auto listed = wire::decode(binding->layout, effect, std::move(response), *cache);
             listed.cost += boot_now() - begin;
             return listed;
           });
}

void QueueDriver::carry_out(const core::ReleaseLock& effect) { send(effect, wall_now()); }

void QueueDriver::carry_out(core::Commit& commit) {
  const auto kept = std::make_shared<const core::Commit>(std::move(commit));
  for (Observer* observer : *observers_) {
    observer->on_commit(options_.queue, kept->ops.size() + kept->partitions.size());
  }
  committing_[kept->request] = commits_.send(
      wire::encode(*binding_, *kept), [inbox = inbox_, kept, observers = observers_,
                                       queue = options_.queue](const http::Response& response) {
        notify(*observers, queue, "transaction", response);
        inbox->at_hand.emplace_back(wire::decode(*kept, response));
      });
}

void QueueDriver::carry_out(const core::CancelRequest& effect) {
  if (lock_watch_->cancel(effect.request)) return;
  if (const auto it = in_flight_.find(effect.request); it != in_flight_.end()) {
    transport_.cancel(it->second);
    in_flight_.erase(it);
  } else if (const auto sent = committing_.find(effect.request); sent != committing_.end()) {
    commits_.cancel(sent->second);
    committing_.erase(sent);
  }
}

// Null: no executor takes the type.
exec::Runner* QueueDriver::runner_of(const std::string& type) const {
  auto it = runners_.find(type);
  if (it == runners_.end()) it = runners_.find("*");
  return it == runners_.end() ? nullptr : it->second.get();
}

// A refusal goes through the inbox, as a job's exit does: the core must not get an event while its
// effects are carried out.
void QueueDriver::carry_out(const core::StartJob& effect) {
  const core::Task& task = *effect.task;
  exec::Runner* runner = runner_of(task.type);
  const auto refuse = [&](std::string error) {
    core::JobExited exit;
    exit.attempt = effect.attempt;
    exit.ending = core::JobEnding::kNotStarted;
    exit.error = std::move(error);
    inbox_->put(std::move(exit));
  };
  if (runner == nullptr) return refuse("no executor for type " + task.type);
  exec::Attempt attempt{effect.attempt,
                        options_.queue,
                        task.id,
                        task.key,
                        binding_->layout.task_id(task.key).value_or(task.id),
                        task.type,
                        task.stamp.attempt,
                        effect.fencing_token,
                        effect.partition,
                        wire::unstamped_record(task)};
  if (runner->reports_pid() && logs(Level::kInfo)) {
    attempt.on_pid = [started = attempt](pid_t pid) { log_started(started, pid); };
  }
  running_[effect.attempt] = runner;
  auto started =
      runner->start(std::move(attempt), effect.deadline.value_or(Instant::max()),
                    [inbox = inbox_, binding = binding_, task = effect.task](exec::Exit exit) {
                      const bool lent = exit.spares_thread;
                      inbox->put(to_core(binding->reserved, task->key, std::move(exit)), lent);
                    });
  if (!started) {
    running_.erase(effect.attempt);
    refuse(std::move(started.error().message));
  }
}

void QueueDriver::carry_out(const core::StopJob& effect) {
  const auto it = running_.find(effect.attempt);
  if (it == running_.end()) return;  // its exit is on its way
  it->second->stop(effect.attempt,
                   std::chrono::duration_cast<std::chrono::milliseconds>(effect.grace));
}

void QueueDriver::carry_out(const core::ExtendLease& effect) {
  host_.set_lease(lease_slot_ + effect.partition, effect.until, options_.kill_grace);
}

// The lock is given up, or another's. A restored snapshot may bring it back to this session later.
// The warden must not release it then: jobs of the leader in between may still run.
void QueueDriver::carry_out(const core::EndLease& effect) {
  host_.clear_lease(lease_slot_ + effect.partition);
  keep_lock(effect.partition, {}, 0);
}

void QueueDriver::carry_out(const core::RememberHolder& effect) {
  held_[effect.partition] = effect.index;
  session_file_.save_held(held_);
}

void QueueDriver::carry_out(const core::Fact& effect) {
  // The line about a program's start waits for its pid.
  const exec::Runner* runner =
      effect.kind == core::Fact::Kind::kStarted ? runner_of(effect.text) : nullptr;
  const bool waits_for_pid = runner != nullptr && runner->reports_pid();
  const bool is_trouble = effect.kind == core::Fact::Kind::kStoreTrouble;
  if (!waits_for_pid && (!is_trouble || troubles_.is_news(boot_now(), effect))) {
    log_fact(options_.queue, effect, options_.partitions);
  }
  for (Observer* observer : *observers_) observer->on_fact(options_.queue, effect);
}

}  // namespace lictor::runtime
