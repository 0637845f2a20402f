#include "cluster.h"

#include <algorithm>
#include <iostream>
#include <type_traits>

namespace lictor::core::test {
namespace {

constexpr Duration kWait = 55s;

bool blocks(const ReadLeader& e) { return e.index != 0; }
bool blocks(const WatchControl& e) { return e.index != 0; }
bool blocks(const ListTasks& e) { return e.index != 0; }
bool blocks(const ListSchedules& e) { return e.index != 0; }
template <class Effect>
bool blocks(const Effect&) {
  return false;
}

// The wire layer's reply without an answer; not `sent`: there was no connection.
template <class Reply>
Event failed(RequestId request, bool sent) {
  Reply reply;
  reply.request = request;
  if constexpr (requires { reply.error; }) reply.error = sent ? "no answer" : "no connection";
  if constexpr (requires { reply.outcome; }) {
    reply.outcome = sent ? Outcome::kUnknown : Outcome::kRejected;
  }
  return reply;
}

// A service manager starts a daemon again when no process of the old one runs; the warden keeps the
// state directory until then.
bool may_restart(const Daemon& daemon) {
  return daemon.restart_at && !daemon.is_up() && daemon.jobs.empty() && !daemon.warden;
}

RequestId request_of(const Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { e.request; }) {
          return e.request;
        } else {
          return RequestId{};
        }
      },
      event);
}

void add_walked(TaskTable::Walked& sum, const TaskTable::Walked& more) {
  for (std::size_t from = 0; from < sum.size(); ++from) sum[from] |= more[from];
}

// The operation of that kind on the key, in a transaction that has one.
template <class O>
const O* op_on(const Effect& effect, const std::string& key) {
  const auto* commit = std::get_if<Commit>(&effect);
  if (commit == nullptr) return nullptr;
  for (const Op& op : commit->ops) {
    const auto* of_kind = std::get_if<O>(&op);
    if (of_kind != nullptr && of_kind->key == key) return of_kind;
  }
  return nullptr;
}

}  // namespace

QueueOptions options_of(const std::string& node) {
  QueueOptions options;
  options.node = node;
  options.any_type = TypePolicy{};
  options.any_type->backoff.jitter = 0;
  return options;
}

std::size_t count(const Daemon& daemon, Fact::Kind kind) {
  const auto facts = all<Fact>(daemon);
  return static_cast<std::size_t>(
      std::count_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.kind == kind; }));
}

bool claims(const Effect& effect, const std::string& key) {
  const auto* restamp = op_on<RestampOp>(effect, key);
  return restamp != nullptr && restamp->stamp.taken;
}

bool finishes(const Effect& effect, const std::string& key) {
  return op_on<FinishOp>(effect, key) != nullptr;
}

Daemon& Cluster::add(QueueOptions options) {
  auto daemon = std::make_unique<Daemon>();
  daemon->name = options.node;
  daemon->options = std::move(options);
  daemon->any_type = daemon->options.any_type.value_or(TypePolicy{});
  daemon->seed = random_.next();
  daemons_.push_back(std::move(daemon));
  start(*daemons_.back());
  return *daemons_.back();
}

void Cluster::start(Daemon& daemon) {
  ++daemon.incarnation;
  daemon.life = daemon.incarnation;
  daemon.restart_at.reset();
  daemon.stops = false;
  daemon.is_remapped = daemon.remaps;
  daemon.first_attempt = 1;
  daemon.given_up = 0;
  given_up_.erase(daemon.name);
  if (divides) {
    if (wish_ == 0) wish_ = daemon.options.partitions;
    daemon.division.emplace(daemon.name, 1, wish_);
    daemon.divide_now = true;
    return join(daemon);
  }
  if (daemon.options.partitions_index != 0) {
    daemon.options.partitions = store.partitions();
    daemon.options.partitions_index = store.partitions_index();
  }
  serve_queue(daemon, daemon.options);
  if (daemon.options.partitions != 1) join(daemon);
}

void Cluster::serve_queue(Daemon& daemon, const QueueOptions& given) {
  QueueOptions options = given;
  options.identity = daemon.queue_identity();
  options.first_attempt = daemon.first_attempt;
  options.costs = store.costs(options.node);
  end_queue(daemon);
  daemon.stopped = false;
  daemon.kept_by.reset();
  daemon.queue = std::make_unique<Queue>(options, daemon.seed + daemon.incarnation);
  daemon.lease_until.clear();
  daemon.trusted_until.clear();
  daemon.kept_session.clear();
  tell(daemon, clock_of(daemon));
  daemon.held_indexes.resize(options.partitions);
  tell(daemon, Started{daemon.remembered, daemon.held_indexes});
}

void Cluster::stop(Daemon& daemon) {
  if (!daemon.is_up()) return;
  daemon.stops = true;
  if (daemon.division) daemon.division->stop();
  if (!daemon.queue || daemon.stopped) return crash(daemon);
  tell(daemon, StopRequested{});
}

void Cluster::drain(Daemon& daemon, bool draining) {
  members_[daemon.name].member.draining = draining;
  tell_members();
}

void Cluster::resize(std::uint32_t partitions) {
  wish_ = partitions;
  wished_at_ = now;
  for (const auto& each : daemons_) {
    const Duration late{static_cast<Duration::rep>(random_.fraction() * 1e10)};
    at(now + late, [this, &daemon = *each] {
      if (!daemon.division) return;  // it reads its configuration when it starts
      daemon.division->reconfigure(local_time(daemon, now), 1, wish_);
    });
  }
}

void Cluster::remap() {
  Duration late{};
  for (const auto& each : daemons_) {
    late += Duration{static_cast<Duration::rep>(random_.fraction() * 2e10)};
    at(now + late, [this, &daemon = *each] {
      daemon.remaps = true;
      if (!daemon.restart_at) restart_after(daemon, 15s);
      stop(daemon);
    });
  }
}

void Cluster::tell_members() {
  if (divides) return;  // they read them
  MembersSeen seen;
  for (const auto& [name, member] : members_) seen.members.push_back(member.member);
  for (const auto& daemon : daemons_) {
    if (daemon->queue) tell(*daemon, seen);
  }
}

void Cluster::end_queue(Daemon& daemon) {
  if (daemon.queue) add_walked(walked_, daemon.queue->walked());
  daemon.queue.reset();
}

TaskTable::Walked Cluster::walked() const {
  TaskTable::Walked sum = walked_;
  for (const auto& daemon : daemons_) {
    if (daemon->queue) add_walked(sum, daemon->queue->walked());
  }
  return sum;
}

Task& Cluster::make(const std::string& id) {
  Task& task = made_[id];
  task = {};
  task.key = std::string{kTasks} + id;
  task.id = id;
  task.type = "Any";
  task.record = std::make_shared<const std::string>("record " + id);
  return task;
}

Daemon* Cluster::leader(std::optional<std::uint32_t> partition) {
  for (const auto& daemon : daemons_) {
    if (!daemon->queue || daemon->is_standing) continue;
    const Instant local = local_time(*daemon, now);
    const bool leads =
        partition ? daemon->queue->leading(local, *partition) : daemon->queue->leading(local);
    if (leads) return daemon.get();
  }
  return nullptr;
}

const Job* Cluster::job(const std::string& key) const {
  for (const auto& daemon : daemons_) {
    for (const auto& [id, job] : daemon->jobs) {
      if (job.task->key == key) return &job;
    }
  }
  return nullptr;
}

std::size_t Cluster::running() const {
  std::size_t jobs = 0;
  for (const auto& daemon : daemons_) jobs += daemon->jobs.size();
  return jobs;
}

void Cluster::end_job(Daemon& daemon, const std::string& key, JobEnding ending, std::string error) {
  for (auto& [id, job] : daemon.jobs) {
    if (job.task->key != key) continue;
    job.plan = {Duration::zero(), ending, std::move(error)};
    job.ends = now;
    return;
  }
  violation("no job of " + key + " to end");
}

std::string Cluster::timed(const std::string& what) const {
  return "+" + std::to_string((now - kStart) / 1ms) + "ms " + what;
}

void Cluster::show(const std::string& what) const { std::cerr << timed(what) + '\n'; }

void Cluster::violation(const std::string& what) { violations_.push_back(timed(what)); }

bool Cluster::run_until(const std::function<bool()>& done_now, Duration limit) {
  const Instant end = now + limit;
  while (!done_now()) {
    if (stop_at_violation && !violations_.empty()) return false;
    const Instant next = std::max(now, next_time());
    if (next > end) {
      now = end;
      return done_now();
    }
    now = next;
    work();
  }
  return true;
}

void Cluster::run_to(Instant end) {
  run_until([] { return false; }, end - now);
}

Instant Cluster::next_time() const {
  if (store.index() != seen_index_) return now;  // a stranger wrote: blocking queries wake
  Instant next = store.next_expiry();
  if (!wires_.empty()) next = std::min(next, wires_.begin()->first.first);
  next = std::min(next, waiters_due_);
  for (const auto& daemon : daemons_) {
    if (may_restart(*daemon)) next = std::min(next, *daemon->restart_at);
    if (daemon->division) {
      const Instant wanted =
          daemon->divide_now ? now : true_time(*daemon, daemon->division->next_deadline());
      next = std::min(next, std::max(wanted, daemon->paused_until));
    }
    if (daemon->queue) {
      const Instant wanted = daemon->inbox.empty()
                                 ? true_time(*daemon, daemon->queue->next_deadline())
                                 : Instant::min();
      const Instant next_step = daemon->is_standing ? daemon->paused_until : wanted;
      next = std::min(next, std::max(next_step, daemon->paused_until));
    }
    for (const auto& [id, job] : daemon->jobs) {
      const Instant lease = Daemon::end_of(daemon->lease_until, job.partition);
      next = std::min({next, job.ends, job.dies, std::max(now, lease)});
    }
  }
  return next;
}

void Cluster::work() {
  store.expire_sessions(now);
  while (!wires_.empty() && wires_.begin()->first.first <= now) {
    const auto node = wires_.extract(wires_.begin());
    node.mapped()();
  }
  answer_waiters();
  work_jobs();
  for (const auto& daemon : daemons_) {
    if (may_restart(*daemon) && now >= *daemon->restart_at) start(*daemon);
    if (!daemon->is_up() || now < daemon->paused_until) continue;
    const Instant local = local_time(*daemon, now);
    const bool due = daemon->queue && local >= daemon->queue->next_deadline();
    const bool is_told = daemon->queue && !daemon->inbox.empty();
    if (due || is_told || daemon->is_standing) step(*daemon);
    if (!daemon->division) continue;
    if (daemon->divide_now || local >= daemon->division->next_deadline()) divide(*daemon);
  }
}

void Cluster::work_jobs() {
  for (const auto& daemon : daemons_) {
    for (auto& [partition, lease_until] : daemon->lease_until) {
      if (daemon->jobs.empty()) break;
      if (now < lease_until) continue;
      for (auto& [id, job] : daemon->jobs) {  // the warden, also when its daemon hangs
        if (job.partition != partition) continue;
        if (daemon->policy_of(*job.task).on_lease_lost == OnLeaseLost::kFinish) continue;
        job.dies = std::min(job.dies, now + stopping(daemon->options.kill_grace));
      }
      lease_until = Instant::max();
    }
    for (auto it = daemon->jobs.begin(); it != daemon->jobs.end();) {
      const Job& job = it->second;
      if (now < job.ends && now < job.dies) {
        ++it;
        continue;
      }
      const bool by_itself = job.ends <= job.dies;
      const JobEnding ending = by_itself ? job.plan.ending : JobEnding::kStopped;
      if (ending == JobEnding::kDone) done.insert(*job.task->record);
      if (on_job_end) on_job_end(*daemon, job, ending);
      if (trace) {
        show(daemon->name + ": job of " + job.task->key +
             (by_itself ? " ends by itself" : " was stopped"));
      }
      if (daemon->queue) {
        JobExited exit{job.id, ending, by_itself ? job.plan.error : "stopped", {}};
        exit.writes = job.plan.writes;
        exit.result = job.plan.result;
        if (by_itself) exit.taken = job.plan.taken;
        exit.result_fault = job.plan.result_fault;
        tell(*daemon, std::move(exit));
      }
      it = daemon->jobs.erase(it);
      daemon->divide_now = true;
    }
    if (!daemon->is_up()) give_back(*daemon);
  }
}

void Cluster::step(Daemon& daemon) {
  if (daemon.is_standing) {
    set_wall_right(daemon);
    daemon.stepped_at = now;
    tell(daemon, clock_of(daemon));
  }
  Effects effects;
  const std::vector<Event> events = std::exchange(daemon.inbox, {});
  const Instant local = local_time(daemon, now);
  daemon.divide_now = true;
  if (!daemon.queue) return;
  for (const Event& event : events) note_lock(daemon, event);
  daemon.queue->step(local, events, effects);
  if (daemon.queue->next_deadline() <= local) {
    violation(daemon.name + ": the next deadline is not in the future");
    daemon.paused_until = now + 1ms;  // no endless loop
  }
  for (const Effect& effect : effects) {
    if (daemon.stopped) violation(daemon.name + ": an effect after Stopped");
    daemon.log.push_back({now, effect});
    if (trace) show(daemon.name + ": " + effect_text(effect));
    if (on_effect) on_effect(daemon, effect);
    carry_out(daemon, effect);
  }
  give_up_claims(daemon);
  if (on_step) on_step(daemon);
  if (!daemon.stopped || (daemon.division && !daemon.stops)) return;
  daemon.kept_session.clear();  // it has seen to its lock itself
  crash(daemon);
}

void Cluster::carry_out(Daemon& daemon, const Effect& effect) {
  std::visit(
      [&](const auto& e) {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, AcquireLock>) {
          if (e.partition.number == 0) daemon.lock_asked = e;
          if (std::exchange(daemon.kept_session, e.session) != e.session) daemon.kept_index = 0;
        }
        if constexpr (requires { serve(daemon, e); }) {
          send(daemon, e);
        } else if constexpr (std::is_same_v<E, CancelRequest>) {
          daemon.waiting.erase(e.request);
        } else if constexpr (std::is_same_v<E, StartJob>) {
          start_job(daemon, e);
        } else if constexpr (std::is_same_v<E, StopJob>) {
          const auto it = daemon.jobs.find(e.attempt);
          if (it == daemon.jobs.end()) return;
          it->second.told_to_stop = true;
          it->second.dies = std::min(it->second.dies, now + stopping(e.grace));
        } else if constexpr (std::is_same_v<E, ExtendLease>) {
          daemon.lease_until[e.partition] = daemon.trusted_until[e.partition] =
              true_time(daemon, e.until);
        } else if constexpr (std::is_same_v<E, EndLease>) {
          daemon.lease_until[e.partition] = daemon.trusted_until[e.partition] = Instant::max();
          if (e.partition == 0) daemon.kept_index = 0;
        } else if constexpr (std::is_same_v<E, RememberSession>) {
          daemon.remembered =
              e.session.empty() ? std::optional<std::string>{} : std::optional{e.session};
        } else if constexpr (std::is_same_v<E, RememberHolder>) {
          daemon.held_indexes.at(e.partition) = e.index;
        } else if constexpr (std::is_same_v<E, Drained>) {
          daemon.kept_by = e.session;
        } else if constexpr (std::is_same_v<E, Stopped>) {
          daemon.stopped = true;
        }
      },
      effect);
}

void Cluster::start_job(Daemon& daemon, const StartJob& effect) {
  const std::string& key = effect.task->key;
  for (const auto& other : daemons_) {
    for (const auto& [id, job] : other->jobs) {
      const bool alone = exclusive || (one_host && other.get() != &daemon) || job.task->key == key;
      if (alone && now >= unguarded_until && !job.stood_still) {
        violation(daemon.name + " starts " + key + " while " + other->name + " runs " +
                  job.task->key);
      }
    }
  }
  std::uint64_t& token = last_token_[key];
  if (effect.fencing_token <= token && now >= unguarded_until) {
    violation(key + ": its fencing token fell");
  }
  token = std::max(token, effect.fencing_token);

  Job job{effect.attempt,    effect.task, effect.fencing_token, effect.partition, now, {}, {},
          plan(*effect.task)};
  job.ends = job.plan.after ? now + *job.plan.after : Instant::max();
  job.dies = Instant::max();
  daemon.jobs.emplace(effect.attempt, std::move(job));
  started.push_back(key);
}

template <class Request>
void Cluster::send(Daemon& daemon, const Request& request) {
  const Fault f = fault(daemon, request);
  const std::uint64_t incarnation = daemon.incarnation;
  using Reply = decltype(serve(daemon, request));
  const auto fail = [id = request.request](bool sent) { return failed<Reply>(id, sent); };
  daemon.waiting.insert(request.request);
  // One query of the runtime watches the locks of all partitions (runtime/lock_watch.h).
  constexpr bool is_lock_read = std::is_same_v<Request, ReadLeader>;
  if (!is_lock_read || daemon.options.partitions == 1) ++daemon.requests;
  Daemon* const d = &daemon;
  if (f.refused) {
    at(now + f.back, [=, this] { deliver(*d, incarnation, fail(false)); });
    return;
  }
  Duration patience = daemon.options.request_timeout;
  if (blocks(request)) patience += kWait * 17 / 16;
  // An answer over a slow link fails when no more of it comes. The values have less time.
  if (std::is_same_v<Request, ListTasks> && link != 0) patience += 1min;
  at(now + patience, [=, this] { deliver(*d, incarnation, fail(true)); });
  if (f.lose_request) return;
  at(now + f.out, [=, this, sent = now] {
    if (f.no_leader) {
      at(now + f.back, [=, this] { deliver(*d, incarnation, fail(true)); });
      return;
    }
    if (blocks(request)) {
      const Duration wait = f.spurious ? f.back : kWait;
      waiters_.push_back({d, incarnation, request, f, now + wait, sent});
      waiters_due_ = now;
      return;
    }
    store.tamper(now, f.tampering);
    Event reply = serve(*d, request);
    store.tamper(now, {});
    if (trace) show("store: " + effect_text(request) + (f.lose_reply ? " (reply lost)" : ""));
    if (on_served) on_served(*d, request, reply);
    if (f.lose_reply) return;
    const Duration transfer = travel(*d, reply);
    at(now + f.back + transfer, [=, this] {
      tell_delivered(*d, incarnation, request, reply, sent);
      deliver(*d, incarnation, reply);
    });
  });
}

void Cluster::answer_waiters() {
  const bool changed = std::exchange(seen_index_, store.index()) != store.index();
  if (!changed && now < waiters_due_) return;
  waiters_due_ = Instant::max();
  std::erase_if(waiters_, [&](Waiter& waiter) {
    const bool is_over = answer(waiter, changed);
    if (!is_over) waiters_due_ = std::min(waiters_due_, waiter.until);
    return is_over;
  });
}

void Cluster::restore(const dev::State& snapshot) {
  for (Waiter& waiter : waiters_) waiter.until = now;
  waiters_due_ = now;
  answer_waiters();
  store.restore(now, snapshot);
  last_token_.clear();
}

// Whether the query is answered, and waits no more.
bool Cluster::answer(Waiter& waiter, bool changed) {
  Daemon& daemon = *waiter.daemon;
  const bool wanted = std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.request; }) {
          return daemon.incarnation == waiter.incarnation && daemon.waiting.contains(e.request);
        } else {
          return false;
        }
      },
      waiter.effect);
  if (!wanted) return true;
  const bool over = now >= waiter.until;
  if (!over && !changed && !waiter.fresh) return false;
  waiter.fresh = false;
  store.tamper(now, waiter.fault.tampering);
  std::optional<Event> reply = ask(waiter, over);
  store.tamper(now, {});
  if (!reply) return false;
  if (on_served) on_served(daemon, waiter.effect, *reply);
  if (waiter.fault.lose_reply) return true;
  const Duration transfer = travel(daemon, *reply);
  at(now + waiter.fault.back + transfer,
     [this, d = &daemon, incarnation = waiter.incarnation, effect = waiter.effect,
      sent = waiter.sent, answer = std::move(*reply)] {
       tell_delivered(*d, incarnation, effect, answer, sent);
       deliver(*d, incarnation, answer);
     });
  return true;
}

std::optional<Event> Cluster::ask(const Waiter& waiter, bool over) {
  return std::visit(
      [&](const auto& e) -> std::optional<Event> {
        if constexpr (requires { store.poll(e, over); }) {
          if (auto reply = store.poll(e, over)) return Event{std::move(*reply)};
        }
        return std::nullopt;
      },
      waiter.effect);
}

void Cluster::tell_delivered(Daemon& daemon, std::uint64_t incarnation, const Effect& effect,
                             const Event& reply, Instant sent) {
  const bool heard = daemon.queue && daemon.incarnation == incarnation &&
                     daemon.waiting.contains(request_of(reply));
  if (heard && on_delivered) on_delivered(daemon, effect, reply, sent);
}

Duration Cluster::transfer_of(const Event& reply) const {
  std::size_t bytes = 0;
  if (const auto* fetched = std::get_if<TasksFetched>(&reply)) {
    bytes = fetched->bytes;
  } else if (const auto* listed = std::get_if<TasksListed>(&reply)) {
    for (const std::string_view key : listed->keys.in_order()) bytes += key.size() + 3;
  }
  if (link == 0) return {};
  const std::chrono::duration<double> seconds{static_cast<double>(bytes) / link};
  return std::chrono::round<Duration>(seconds);
}

// How long the answer is on its way, after the earlier ones.
Duration Cluster::travel(Daemon& daemon, Event& reply) {
  if (const auto* fetched = std::get_if<TasksFetched>(&reply)) {
    largest_answer = std::max(largest_answer, fetched->bytes);
  }
  const Duration transfer = transfer_of(reply);
  if (transfer == Duration::zero()) return {};
  daemon.link_free_at = std::max(daemon.link_free_at, now) + transfer;
  if (auto* names = std::get_if<TasksListed>(&reply)) names->transfer = transfer;
  return daemon.link_free_at - now;
}

void Cluster::at(Instant when, std::function<void()> what) {
  wires_.emplace(std::pair{when, ++sequence_}, std::move(what));
}

void Cluster::deliver(Daemon& daemon, std::uint64_t incarnation, Event event) {
  if (!daemon.queue || daemon.incarnation != incarnation) return;
  if (daemon.waiting.erase(request_of(event)) == 0) return;
  tell(daemon, std::move(event));
}

}  // namespace lictor::core::test
