#include "simulation.h"

#include <algorithm>
#include <utility>

namespace lictor::core::test {
namespace {

constexpr Duration kFaults = 120s;
// Lock-delay, session TTL, backoffs and the longest wait of a blocking query, one after the other,
// and the jobs of forty tasks.
constexpr Duration kSettles = 400s;

}  // namespace

Duration Simulation::between(Duration least, Duration most) {
  const auto span = static_cast<double>((most - least).count());
  return least + Duration{static_cast<Duration::rep>(span * random_.fraction())};
}

Simulation::Simulation(std::uint64_t seed, bool trace)
    : random_(seed), cluster_(seed), oracle_(cluster_) {
  cluster_.trace = trace;
  cluster_.exclusive = false;  // the oracle looks itself
  cluster_.stop_at_violation = true;
  draw_mix();
  options_ = draw_options();
  cluster_.plan = [this](const Task& task) { return plan(task); };
  cluster_.stopping = [this](Duration grace) {
    return chance(0.2) ? grace : between(1ms, grace);  // some ignore TERM
  };
  cluster_.fault = [this](const Daemon& daemon, const Effect& effect) {
    return fault(daemon, effect);
  };
  const bool drifts = chance(0.5);
  const int daemons = chance(0.5) ? 2 : 3;
  for (int i = 0; i < daemons; ++i) {
    options_.node = std::string(1, static_cast<char>('a' + i));
    Daemon& daemon = cluster_.add(options_);
    if (drifts) daemon.drift = static_cast<std::int64_t>(random_.next() % 201) - 100;
  }
}

// Each seed its own mix: what never comes together with everything else at once would stay unseen
// if all runs had all faults.
void Simulation::draw_mix() {
  const auto maybe = [this](double p) { return chance(0.6) ? p * 2 * random_.fraction() : 0.0; };
  mix_.lose_request = maybe(0.05);
  mix_.lose_reply = maybe(0.05);
  mix_.refuse = maybe(0.03);
  mix_.late = maybe(0.05);
  mix_.zombie = maybe(0.04);
  mix_.crash = maybe(0.03);
  mix_.pause = maybe(0.04);
  mix_.kill_session = maybe(0.03);
  mix_.outage = maybe(0.04);
  mix_.fail_over = maybe(0.03);
  mix_.control = maybe(0.03);
  mix_.stop = maybe(0.03);
  mix_.strangers = maybe(0.03);
  mix_.clock_step = maybe(0.03);
  mix_.nonsense = maybe(0.05);
  mix_.reap = maybe(0.05);
  mix_.large = chance(0.15);
}

QueueOptions Simulation::draw_options() {
  QueueOptions options = options_of("");
  if (chance(0.3)) options.concurrency = 3;
  if (chance(0.3)) options.prefetch = 2;
  if (chance(0.3)) options.preload = 8s;
  if (chance(0.2)) options.max_operations = 5;
  if (mix_.large) options.max_transaction_bytes = 8'000;
  // Short, so that leadership is lost and taken over many times within a run; in the relations
  // that the configuration demands.
  options.session_ttl = 10s;
  options.renew_interval = 3s;
  options.request_timeout = 1s;
  options.lock_delay = 10s;
  options.kill_grace = 2s;
  options.margin = 500ms;
  options.standoff = between(1s, 8s);
  options.drain_timeout = between(1s, 10s);
  // Else what was unlucky ends as a dead letter, rightly, and little is left to be checked.
  options.max_losses = chance(0.3) ? 3 : 1'000;
  options.any_type->max_attempts = 1'000;
  options.any_type->backoff.max = 3s;
  if (chance(0.3)) options.history = HistoryLimits{5, 1h};
  if (chance(0.2)) options.rate_limit = Rate{100ms, 3};
  if (chance(0.3)) options.serialize_retries = false;
  options.types["once"] = *options.any_type;
  options.types["once"].delivery = Delivery::kAtMostOnce;
  options.types["once"].max_attempts = 1;
  options.types["brittle"] = *options.any_type;
  options.types["brittle"].max_attempts = 3;
  return options;
}

JobPlan Simulation::plan(const Task& task) {
  if (phase_ == Phase::kHang) return {};
  if (phase_ == Phase::kOrder || phase_ == Phase::kAnew)
    return {between(1ms, 50ms), JobEnding::kDone, {}};
  const bool hangs = phase_ == Phase::kFaults && chance(0.15);
  JobPlan plan{between(1ms, hangs ? 60s : 300ms), JobEnding::kDone, {}};
  if (chance(0.1)) plan = {between(1ms, 100ms), JobEnding::kRetry, "no luck"};
  if (task.type == "brittle") plan.ending = JobEnding::kRetry;
  if (task.type == "effects") {  // writes what it did, exactly once, whatever happens
    plan.writes.push_back({"app/" + std::to_string(++serial_ % 7), *task.record, false, {}});
    if (chance(0.2)) plan.writes.back().cas = random_.next() % 2 == 0 ? 0 : 1'000'000'000;
  }
  return plan;
}

Fault Simulation::fault(const Daemon& daemon, const Effect& effect) {
  Fault f;
  f.out = between(100us, 3ms);
  f.back = between(100us, 3ms);
  if (phase_ == Phase::kAnew && std::holds_alternative<Commit>(effect)) f.back = 100ms;
  if (phase_ != Phase::kFaults) return f;
  if (const auto it = outage_until_.find(&daemon);
      it != outage_until_.end() && cluster_.now < it->second) {
    f.lose_request = chance(0.7);
    f.lose_reply = chance(0.5);
    f.refused = chance(0.3);
    return f;
  }
  f.no_leader = cluster_.now < leaderless_until_;
  f.lose_request = chance(mix_.lose_request);
  f.lose_reply = chance(mix_.lose_reply);
  f.refused = chance(mix_.refuse);
  if (chance(mix_.late)) f.back = between(1ms, 4s);
  if (chance(mix_.late)) f.out = between(1ms, 2s);
  // A frozen server: the write lands long after its sender gave up (CONSUL-FACTS.md 6.5).
  if (chance(mix_.zombie)) f.out = between(1s, 60s);
  return f;
}

void Simulation::misfortune() {
  const auto& daemons = cluster_.daemons();
  Daemon& daemon = *daemons[random_.next() % daemons.size()];
  if (chance(mix_.crash)) {
    if (daemon.queue) cluster_.crash(daemon);
    cluster_.restart_after(daemon, between(10ms, 30s));
  }
  if (chance(mix_.pause)) cluster_.pause(daemon, between(100ms, chance(0.5) ? 3s : 50s));
  if (chance(mix_.outage)) {
    const Instant until = cluster_.now + between(100ms, chance(0.5) ? 4s : 60s);
    const bool all = chance(0.3);
    for (const auto& each : daemons) {
      if (all || each.get() == &daemon) outage_until_[each.get()] = until;
    }
    if (chance(0.3)) cluster_.kill_session();
  }
  if (chance(mix_.stop)) {
    if (daemon.queue) cluster_.tell(daemon, StopRequested{});
    cluster_.restart_after(daemon, between(15s, 60s));
  }
  if (chance(mix_.clock_step)) {
    cluster_.step_clock(
        daemon, std::chrono::milliseconds{static_cast<int>(random_.next() % 10'000) - 5'000});
  }
  misfortune_of_store();
}

void Simulation::misfortune_of_store() {
  if (chance(mix_.kill_session)) cluster_.kill_session();
  if (chance(mix_.fail_over)) {
    leaderless_until_ = cluster_.now + between(10ms, chance(0.5) ? 3s : 20s);
    cluster_.store.fail_over(cluster_.now);
  }
  if (chance(mix_.control)) {
    cluster_.store.control(chance(0.2), "step-down " + std::to_string(random_.next()));
  }
  if (chance(mix_.strangers)) cluster_.store.overwrite_leader_key();
  if (chance(mix_.reap)) cluster_.store.reap();
}

void Simulation::put(Task& task) {
  if (const Task* old = cluster_.store.task(task.key)) oracle_.withdrawn(*old->record);
  cluster_.store.put(task);
  oracle_.produced(task);
}

void Simulation::produce() {
  const std::string id = "t" + std::to_string(random_.next() % 40);
  const std::string key = std::string{kTasks} + id;
  const Task* old = cluster_.store.task(key);
  if (chance(0.1) && cluster_.store.has(key)) {
    if (old != nullptr) oracle_.withdrawn(*old->record);
    cluster_.store.remove(key);
    return;
  }
  if (chance(mix_.nonsense)) {
    if (old != nullptr) oracle_.withdrawn(*old->record);
    cluster_.store.put_bad(key, "nonsense " + std::to_string(++serial_), "not a task");
    return;
  }
  Task& task = cluster_.make(id);
  std::string bytes = "record " + std::to_string(++serial_);
  if (mix_.large && chance(0.3)) bytes += std::string(10'000, '.');
  const bool small = bytes.size() < 1'000;
  task.record = std::make_shared<const std::string>(std::move(bytes));
  if (chance(0.5)) task.task_time = cluster_.wall() - std::chrono::seconds{random_.next() % 100};
  if (chance(0.2)) task.execute_at = cluster_.wall() + std::chrono::seconds{random_.next() % 20};
  if (chance(0.1)) task.expire_at = cluster_.wall() + std::chrono::seconds{random_.next() % 20};
  if (chance(0.3)) task.serial_key = "db" + std::to_string(random_.next() % 3);
  if (chance(0.1)) task.timeout = between(10ms, 1s);
  if (chance(0.2) && small) {  // its write is its record, and must fit
    task.type = "effects";
  } else if (chance(0.2)) {
    task.type = chance(0.5) ? "once" : "brittle";
  }
  put(task);
}

void Simulation::run_with_faults() {
  const Instant end = cluster_.now + kFaults;
  while (cluster_.now < end && !failed()) {
    cluster_.run_for(between(1ms, 1s));
    misfortune();
    while (chance(0.4)) produce();
  }
  oracle_.check_books();
}

void Simulation::heal() {
  phase_ = Phase::kHealed;
  cluster_.store.control(false, "");
  for (const auto& daemon : cluster_.daemons()) {
    daemon->paused_until = Instant::min();
    if (!daemon->queue) cluster_.restart_after(*daemon, 0s);
  }
  const auto& store = cluster_.store;
  if (!cluster_.run_until([&] { return store.task_keys().empty(); }, kSettles) && !failed()) {
    std::string left = "not ended although nothing fails any more:";
    for (const auto& key : store.task_keys()) left += ' ' + key;
    cluster_.violation(left);
  }
  oracle_.check_books();
  oracle_.check_nothing_lost();
}

// Known to the leader all together, and let go at once: what starts must start in order.
void Simulation::try_order() {
  phase_ = Phase::kOrder;
  // What was late may still land; and who was told to go has come back.
  cluster_.run_for(70s);
  cluster_.run_until([&] { return cluster_.leader() != nullptr; }, 60s);
  cluster_.store.control(true, "");
  cluster_.run_for(3s);
  const std::size_t before = cluster_.started.size();
  for (int i = 0; i < 8; ++i) {
    Task& task = cluster_.make("o" + std::to_string(random_.next() % 1'000));
    if (cluster_.store.has(task.key)) continue;
    task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
    if (chance(0.7)) task.task_time = cluster_.wall() - std::chrono::seconds{random_.next() % 100};
    if (chance(0.4)) task.serial_key = "db" + std::to_string(random_.next() % 2);
    put(task);
  }
  cluster_.run_for(3s);
  if (cluster_.started.size() != before) cluster_.violation("a task started in a paused queue");
  std::map<std::string, Order> orders;
  std::map<std::string, std::string> lanes;
  for (const std::string& key : cluster_.store.task_keys()) {
    const Task& task = *cluster_.store.task(key);
    orders[key] = order_of(task);
    lanes[key] = task.serial_key;
  }
  cluster_.store.control(false, "");
  if (!cluster_.run_until([&] { return cluster_.store.task_keys().empty(); }, 60s) && !failed()) {
    cluster_.violation("eight tasks did not end within a minute without faults");
  }
  std::map<std::string, Order> last;  // by lane; all are one lane where one runs at a time
  for (std::size_t i = before; i < cluster_.started.size(); ++i) {
    const std::string& key = cluster_.started[i];
    const std::string lane = options_.concurrency == 1 ? "all" : lanes[key];
    if (lane.empty()) continue;
    const auto it = last.find(lane);
    if (it != last.end() && orders[key] < it->second) {
      cluster_.violation(key + " starts after " + it->second.key + ", out of order");
    }
    last[lane] = orders[key];
  }
}

// Jobs that hang: no more is claimed than may be, and a withdrawn task's job is stopped.
void Simulation::try_limits() {
  phase_ = Phase::kHang;
  for (int i = 0; i < 10; ++i) {
    Task& task = cluster_.make("h" + std::to_string(i));
    task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
    put(task);
  }
  cluster_.run_for(5s);
  std::size_t taken = 0;
  for (const std::string& key : cluster_.store.task_keys()) {
    if (const Task* task = cluster_.store.task(key); task != nullptr && task->stamp.taken) ++taken;
  }
  if (taken > options_.concurrency + options_.prefetch) {
    cluster_.violation(std::to_string(taken) + " tasks are claimed, beyond the limit");
  }
  if (cluster_.running() != options_.concurrency && !failed()) {
    cluster_.violation("there are tasks to run, and " + std::to_string(cluster_.running()) +
                       " of " + std::to_string(options_.concurrency) + " slots are taken");
  }
  for (const std::string& key : cluster_.store.task_keys()) {
    oracle_.withdrawn(*cluster_.store.task(key)->record);
    cluster_.store.remove(key);
  }
  cluster_.run_for(5s);
  if (cluster_.running() != 0) cluster_.violation("a job of a withdrawn task runs on");
}

// A producer takes the name of a task whose finish is not acknowledged yet; nothing else happens
// that would make anybody look.
void Simulation::try_anew() {
  phase_ = Phase::kAnew;
  for (int i = 0; i < 2; ++i) {
    Task& task = cluster_.make("anew");
    task.record = std::make_shared<const std::string>("record " + std::to_string(++serial_));
    const std::string key = task.key;
    put(task);
    if (!cluster_.run_until([&] { return !cluster_.store.has(key); }, 10s) && !failed()) {
      cluster_.violation("a task alone did not end within ten seconds without faults");
    }
  }
}

std::string Simulation::run() {
  using Step = void (Simulation::*)();
  for (const Step step : {&Simulation::run_with_faults, &Simulation::heal, &Simulation::try_order,
                          &Simulation::try_limits, &Simulation::try_anew}) {
    (this->*step)();
    if (failed()) return cluster_.violations().front();
  }
  return {};
}

}  // namespace lictor::core::test
